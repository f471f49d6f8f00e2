#!/bin/sh
# Makes sure that there is a Chromium for the tests of the dashboard; installs one with apt-get where
# that is possible. Without one those tests are skipped, so this never fails.
set -u

if command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 ||
    command -v google-chrome >/dev/null 2>&1; then
    exit 0
fi
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    echo "installing Chromium with apt-get"
    (apt-get update -qq && timeout 300 apt-get install -y -qq --no-install-recommends chromium) >/dev/null 2>&1
    command -v chromium >/dev/null 2>&1 && exit 0
fi
echo "no Chromium here: the tests of the dashboard will be skipped (Debian: apt-get install chromium)" >&2
exit 0
