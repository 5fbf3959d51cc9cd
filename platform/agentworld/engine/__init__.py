"""Model servers: starts them and talks to them over HTTP; never imports a model."""
