"""Middlewares: small policies around the downloader and around the callbacks, one file each."""
