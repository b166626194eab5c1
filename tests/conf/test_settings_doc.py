"""docs/settings.md is made from the list of settings, and is what the list says now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from scrapy_plus.conf.layers import OPTIONS

ROOT = Path(__file__).parent.parent.parent


def test_the_page_on_settings_is_current():
    script = [sys.executable, str(ROOT / "scripts" / "gen-settings-doc"), "--check"]
    done = subprocess.run(script, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_page_has_every_setting_once():
    lines = (ROOT / "docs" / "settings.md").read_text("utf-8").splitlines()
    assert [line.split()[1] for line in lines if line.startswith("### ")] == list(OPTIONS)
