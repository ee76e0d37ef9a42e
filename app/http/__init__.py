"""HTTP around the routes: the application, bodies, connections, metrics, the running service."""
