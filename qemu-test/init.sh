#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# PID 1 of the guest: brings the devices up, runs /test/main.sh, reports.
#
# Two virtio-serial ports lead to the host. What the test prints goes to the
# first, what it writes to /dev/ack to the second, from which /dev/cmd reads.
# A port can be open only once, so the test sees fifos, which init forwards.
#
# Lines on the first port that begin with $TOKEN, fresh for each boot, are
# init's own: begin, kernel-log (what follows is dmesg), verdict STATUS.

export PATH=/usr/bin:/usr/sbin HOME=/root TERM=linux
. /etc/vm.conf

mount_all() {
	mount -t proc proc /proc
	mount -t sysfs sysfs /sys
	mount -t devtmpfs devtmpfs /dev
	mkdir -p /dev/pts /dev/shm
	mount -t devpts devpts /dev/pts
	mount -t tmpfs tmpfs /dev/shm
	mount -t tmpfs tmpfs /tmp
	mount -t debugfs debugfs /sys/kernel/debug
	ln -sf /proc/self/fd /dev/fd
	ln -sf fd/0 /dev/stdin
	ln -sf fd/1 /dev/stdout
	ln -sf fd/2 /dev/stderr
	chmod 755 /
	ip link set lo up
}

# Without a verdict the host calls the run failed, so there is no more to do.
give_up() {
	echo "init: $*" >/dev/console
	poweroff -f
}

load_modules() {
	while read -r line; do
		# shellcheck disable=SC2086  # path and parameters
		insmod $line || give_up "insmod $line failed"
	done </etc/modules
}

# Ports appear a little after their driver.
port() {
	# shellcheck disable=SC2144  # there is one such port
	until [ -c /dev/vport*p"$1" ]; do usleep 1000; done
	echo /dev/vport*p"$1"
}

open_channels() {
	mkfifo /run/out /dev/ack /dev/cmd
	exec 5<>"$(port 2)" 3<>/run/out 4<>/dev/ack 6<>/dev/cmd
	cat <&3 >"$(port 1)" 5>&- &
	cat <&4 >&5 &
	cat <&5 >&6 &
}

# Probing is asynchronous; reading this file waits for it.
settle() {
	for bus in /sys/bus/nd/devices/ndbus*; do
		[ ! -e "$bus/wait_probe" ] || cat "$bus/wait_probe" >/dev/null
	done
}

# Where a persistent device came from shows in its sysfs path.
devices_of() {
	for block in $(ls -d /sys/block/pmem* 2>/dev/null | sort -V); do
		case $(readlink -f "$block") in
		*"$1"*) echo "/dev/${block##*/}" ;;
		esac
	done | xargs
}

# A new NVDIMM is one raw namespace; DAX with struct pages takes fsdax mode.
make_fsdax() {
	for namespace in /sys/bus/nd/devices/namespace*; do
		case $(readlink -f "$namespace") in */ACPI0012:*) ;; *) continue ;; esac
		# The seed of a next namespace is raw as well, of size 0.
		[ "$(cat "$namespace/mode")" = raw ] && [ "$(cat "$namespace/size")" -gt 0 ] || continue
		ndctl create-namespace -f -e "${namespace##*/}" -m fsdax --map="$MAP" >/run/ndctl 2>&1 ||
			give_up "ndctl: $(cat /run/ndctl)"
	done
}

export_environment() {
	set -a
	. /etc/test.env
	set +a
	NVDIMMS=$(devices_of ACPI0012:)
	MEMMAPS=$(devices_of e820_pmem)
	VIRTIO_PMEMS=$(devices_of virtio)
	export NVDIMMS MEMMAPS VIRTIO_PMEMS
	# shellcheck disable=SC2086  # counts the words
	set -- $NVDIMMS / $MEMMAPS / $VIRTIO_PMEMS
	[ $# = $((PMEMS + 2)) ] || give_up "expected $PMEMS persistent devices, found: $*"
}

kernel_log() {
	if [ -e /sys/kernel/debug/kmemleak ]; then
		# An object counts as leaked when two scans, over 5 s after its birth, miss it.
		sleep 6
		echo scan >/sys/kernel/debug/kmemleak
		echo scan >/sys/kernel/debug/kmemleak
		cat /sys/kernel/debug/kmemleak
	fi
	dmesg -r
}

run_test() {
	echo "$TOKEN begin" >&3
	(cd /test && exec ./main.sh </dev/null >/run/out 2>&1 3>&- 4>&- 5>&- 6>&-)
	status=$?
	echo "$TOKEN end" >&4
	echo "$TOKEN kernel-log" >&3
	kernel_log >&3
	echo "$TOKEN verdict $status" >&3
	# The host cuts the power when it has read both.
	while :; do sleep 3600; done
}

mount_all
load_modules
settle
make_fsdax
settle
export_environment
# Booting printed errors only; from here on a warning is somebody's fault.
dmesg -n 7
if [ "$INTERACTIVE" ]; then
	setsid cttyhack sh
	poweroff -f
fi
open_channels
run_test
