"""One thin file of routes per noun: parse, call the service, answer."""

from fastapi import APIRouter

from gateway.api.routes import (
    cohorts,
    definitions,
    device_types,
    devices,
    events,
    flavors,
    health,
    jobs,
    nodes,
    order,
    priority_classes,
    queues,
    stories,
    unbuilt,
    verbs,
    whoami,
)


def all_routers() -> tuple[APIRouter, ...]:
    """Give the routers below /api/v1, the busiest first."""
    return (
        jobs.router,
        verbs.router,
        stories.router,
        queues.router,
        order.router,
        cohorts.router,
        flavors.router,
        priority_classes.router,
        definitions.router,
        nodes.router,
        devices.router,
        device_types.router,
        events.router,
        whoami.router,
        health.router,
        # Last: routing takes the first that fits, and a route that is built must win over its
        # refusal.
        unbuilt.router,
    )


def root_router() -> APIRouter:
    """Give what probes and scrapers expect at the root as well."""
    return health.router
