"""Ten jobs that wait for ten reasons, on a served gateway, and the page that shows them."""
