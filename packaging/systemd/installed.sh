#!/bin/sh
# After deb and rpm have laid down their files. Nothing is started: a server needs a token first.
set -e
if command -v systemd-sysusers >/dev/null; then systemd-sysusers codehand.conf || true; fi
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
if [ -d /sys/kernel/security/apparmor ] && command -v apparmor_parser >/dev/null; then
	apparmor_parser -r /etc/apparmor.d/codehand || true
fi
