#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# A storm of SIGKILLs on one region of the kernel, and a look at what it left: storm.sh DIR REGION [DEVICE]
#
# DIR holds the program `storm`, which kills PMHEAP_KILLS processes and accounts for what is in the pools. Here is
# what only the outside shows: chunks and pools of the region, references to the module, memory that the kernel
# still keeps for the dead, and whether `pmheap check` is content. The region has to be nobody else's meanwhile;
# with DEVICE it is detached for a check at rest, too, and attached again. Root, in a machine with cgroup2.
#
# Prints TAP, and ends with a line "storm: kills=N leaks=N".
set -u

dir=$1 region=$2 device=${3-}
kills=${PMHEAP_KILLS:-400}
program="storm"
n=0 leaks=0 failed=0
group=/run/storm.cgroup
out=$(mktemp)
checked=/run/storm.checked

test_that() { # TEXT COMMAND...
	n=$((n + 1)) text=$1
	shift
	if "$@"; then
		echo "ok $n - storm: $text"
	else
		failed=$((failed + 1))
		echo "not ok $n - storm: $text"
	fi
}

# What the dead had of the kernel's memory is charged to their cgroup until it is freed.
enter_group() {
	mkdir -p $group
	mount -t cgroup2 storm $group &&
	echo +memory >$group/cgroup.subtree_control &&
	mkdir $group/storm
}

leave_group() {
	rmdir $group/storm
	umount $group
	rm -f "$out" "$checked" "$checked".*
}

# Some is freed by RCU, a little later; dentries and inodes stay until somebody wants their memory.
kernel_bytes() {
	sleep 1
	echo 2 >/proc/sys/vm/drop_caches
	sed -n 's/^kernel //p' $group/storm/memory.stat
}

storm() { # KILLS
	# shellcheck disable=SC2016  # for the inner shell
	PMHEAP_TEST_REGION=$region PMHEAP_KILLS=$1 TAP_SECONDS=$((120 + $1)) \
		sh -c 'echo $$ >'$group'/storm/cgroup.procs && exec "$0"' "$dir/$program" >"$out"
}

died() { sed -n 's/^# \([0-9]*\) killed .*/\1/p' "$out"; }

outside() {
	pmheap info "$region" | sed -n 's/^free .* in \([0-9]*\) of .*/\1 chunks free/p; s/^pools *\([0-9]*\) .*/\1 pools/p' |
		tr '\n' ' '
	echo "$(cat /sys/module/pmheap/refcnt) references"
}

whole() { # STATUS KILLS
	grep '^# ' "$out"
	leaks=$((leaks + $(grep -c '^# leak' "$out")))
	[ "$1" -eq 0 ] && [ "${2:-0}" -ge "$kills" ]
}

same() { # BEFORE AFTER
	[ "$1" = "$2" ] && return
	leaks=$((leaks + 1))
	echo "# leak: before the storm $1, after it $2"
	return 1
}

# The first storm fills caches. After that a killed process may not cost half of what the module's smallest
# object does, a link of 96 bytes.
no_growth() { # BEFORE
	for try in 1 2 3 4 5 6 7 8; do
		after=$(kernel_bytes)
		[ $((after - $1)) -lt $((kills * 48 + 16384)) ] && break
	done
	echo "# kernel memory of the dead: $1 bytes after the first storm, $after after the second, at look $try"
	[ $((after - $1)) -lt $((kills * 48 + 16384)) ] && return
	leaks=$((leaks + 1))
	return 1
}

# Round after round beside the storm, until $checked.stop is there. What changes hands all the time may be left out.
check_on() { # REGION
	rounds=0
	while [ ! -e "$checked.stop" ]; do
		pmheap check "$1" --rate 0 >"$checked.now" 2>&1
		rounds=$((rounds + 1))
		grep -qx 'clean\|no damage in what was covered' "$checked.now" || cp "$checked.now" "$checked.bad"
	done
	echo $rounds >"$checked"
}

checked_on() {
	touch "$checked.stop"
	wait "$checker"
	echo "# $(cat "$checked") rounds of check beside the storm"
	[ ! -e "$checked.bad" ] && [ "$(cat "$checked")" -gt 0 ] && return
	sed 's/^/# /' "$checked.bad"
	leaks=$((leaks + 1))
	return 1
}

check_in_use() { # REGION
	pmheap check "$1" >"$out" && return
	leaks=$((leaks + 1))
	sed 's/^/# /' "$out"
	return 1
}

check_at_rest() { # REGION DEVICE
	if ! pmheap detach "$1" || ! pmheap check "$2" >"$out"; then
		leaks=$((leaks + 1))
		sed 's/^/# /' "$out"
		return 1
	fi
	pmheap attach "$2" >/dev/null
}

enter_group || { echo "not ok 1 - storm: a memory cgroup"; echo 1..1; exit 1; }
trap leave_group EXIT
echo "TAP version 13"
storm 60 || grep '^#' "$out"
settled=$(kernel_bytes)
before=$(outside)
check_on "$region" &
checker=$!
storm "$kills"
status=$?
total=$(died)
test_that "check beside the storm finds nothing" checked_on
test_that "each object in the heaps is accounted for, and nothing is reserved" whole $status "$total"
test_that "no chunk, pool, file or mount of the module is left" same "$before" "$(outside)"
test_that "no kernel memory of the dead is left" no_growth "$settled"
test_that "check is clean without detaching" check_in_use "$region"
[ -z "$device" ] || test_that "check is clean at rest" check_at_rest "$region" "$device"
echo "1..$n"
echo "storm: kills=${total:-0} leaks=$leaks"
[ $failed -eq 0 ]
