"""Programs and manifests to try the gateway with; the product never imports them."""
