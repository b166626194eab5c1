"""A crawler framework that loses nothing."""

from gevent import monkey

monkey.patch_all()
