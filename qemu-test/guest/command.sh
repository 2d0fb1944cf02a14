#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The command pmheap on two NVDIMMs, one with a region and one with what another program left there. TAP.
. /test/tap.sh
set -- $NVDIMMS
ours=$1 foreign=$2

digest() { sha256sum "$1" | cut -d ' ' -f 1; }

# Fails with this exit code, says this, and leaves the device as it was.
refuses() { # CODE TEXT DEVICE COMMAND...
	code=$1 text=$2 device=$3
	shift 3
	before=$(digest "$device")
	"$@" >/tmp/refused 2>&1
	rc=$?
	cat /tmp/refused
	[ $rc -eq "$code" ] && grep -q "$text" /tmp/refused && [ "$(digest "$device")" = "$before" ]
}

regions() { pmheap list | grep -c '^pmheap[0-9]'; }

attaches_only_ours() {
	[ "$(pmheap attach --all)" = "/dev/pmheap0 $ours" ] && [ "$(regions)" -eq 1 ] && [ -c /dev/pmheap0 ]
}

nothing_more_to_attach() { [ -z "$(pmheap attach --all)" ] && [ "$(regions)" -eq 1 ]; }

list_agrees_with_sysfs() {
	line=$(pmheap list | sed -n 's/^pmheap0 *//p')
	sectors=$(cat "/sys/class/block/${ours#/dev/}/size")
	echo "$line; $sectors sectors"
	[ "$(echo "$line" | cut -d ' ' -f 1)" = "$((sectors / 2048))M" ] && echo "$line" | grep -q " ${ours#/dev/} *fruit$" &&
		[ -e /sys/class/pmheap/pmheap0 ]
}

info_agrees_with_sysfs() {
	pmheap info pmheap0 --json >/tmp/info && cat /tmp/info
	bytes=$(($(cat "/sys/class/block/${ours#/dev/}/size") * 512))
	grep -q "\"bytes\":$bytes," /tmp/info && grep -q "\"uuid\":\"$uuid\"" /tmp/info &&
		grep -q '"region":"pmheap0"' /tmp/info && pmheap info "uuid:$uuid" && pmheap info label:fruit
}

is_there_as_json() { pmheap attach "$ours" --json | grep -x "{\"attached\":\[{\"device\":\"$ours\",\"region\":\"/dev/pmheap0\"}\]}"; }
has_no_regions() { [ "$(pmheap list --json)" = '{"regions":[]}' ] && [ -z "$(pmheap list)" ]; }
info_offline() { pmheap info "$ours" --json | grep "\"uuid\":\"$uuid\"" | grep '"attached":false'; }
formats() { uuid=$(pmheap format "$ours" --label fruit) && uuid=${uuid#uuid:} && [ ${#uuid} -eq 36 ]; }

# ---- check of a region in use ----

covers_all() {
	says 0 '"damages":0,"covered":{"steps":[0-9]*,"done":[0-9]*,"busy":0,' pmheap check pmheap0 --json &&
		[ "$(sed 's/.*"steps":\([0-9]*\),"done":\([0-9]*\),.*/\1/' /tmp/answer)" = "$(sed 's/.*"done":\([0-9]*\),.*/\1/' /tmp/answer)" ]
}

# Slow enough to be at it for long; it tells what it knows by then.
is_interrupted() {
	pmheap check pmheap0 --rate 1M >/tmp/answer 2>&1 &
	sleep 2
	kill -INT $!
	wait $!
	rc=$?
	cat /tmp/answer
	[ $rc -eq 2 ] && grep -q "it was interrupted" /tmp/answer && grep -q "no damage in what was covered" /tmp/answer
}

u64_at() { dd if="$ours" bs=8 skip=$(($1 / 8)) count=1 2>/dev/null | od -A n -t u8 | tr -d ' '; }

# A page line of a metadata block that nobody uses, of which attach knows nothing.
damage_a_line() {
	front=$(($(u64_at 128) >> 32))
	line=$(($(u64_at 168) + 64 * (front + 9)))
	printf '\001' | dd of="$ours" bs=1 seek=$line conv=notrunc 2>/dev/null && pmheap attach "$ours"
}

finds_the_line() { says 1 "damage *a line fails its seal (at $line)" pmheap check pmheap0 --quick; }
finds_it_as_json() { says 1 "\"findings\":\[{\"kind\":\"damage\",\"what\":\"[^\"]*\",\"where\":$line}\]" pmheap check pmheap0 --json; }

# What a namespace within a namespace would have there.
printf 'NVDIMM_PFN_INFO\0' | dd of="$foreign" bs=1 seek=4096 conv=notrunc 2>/dev/null

shows "no region is no failure" has_no_regions
shows "format of an empty device" formats
shows "info of a device that is not attached" info_offline
shows "format refuses a foreign device, which keeps every byte" \
	refuses 1 "it holds an fsdax namespace's page map" "$foreign" pmheap format "$foreign"
shows "format refuses a region" refuses 1 "it holds a pmheap region ($uuid, label fruit)" "$ours" pmheap format "$ours"
shows "attach refuses a foreign device" refuses 1 "there is no region on it" "$foreign" pmheap attach "$foreign"
shows "attach --all takes the region and leaves the foreign device" attaches_only_ours
shows "attach --all again finds nothing, and does not fail" nothing_more_to_attach
shows "attach of an attached device is refused" refuses 1 "in use" "$ours" pmheap attach "$ours"
shows "format of an attached device is refused" refuses 1 "in use" "$ours" pmheap format "$ours"
shows "and with --force as well" refuses 1 "in use" "$ours" pmheap format "$ours" --force
shows "list agrees with sysfs" list_agrees_with_sysfs
shows "info agrees with sysfs, by name, UUID and label" info_agrees_with_sysfs
shows "create on a region" pmheap create pmheap0 pool --quota 4M
shows "check of a region in use is clean" says 0 "^clean" pmheap check pmheap0
shows "it covers all, and says so as JSON" covers_all
shows "and by other names" says 0 "^clean" pmheap check "uuid:$uuid" --rate 0 --quick
shows "check that is interrupted tells what it covered" is_interrupted
shows "check --list is for regions at rest" says 2 "for regions at rest" pmheap check pmheap0 --list
shows "check of the device names the region's way" says 2 "then name the region" pmheap check "$ours"
shows "destroy" pmheap destroy pmheap0 pool
shows "detach by label" pmheap detach label:fruit
shows "no region is left" has_no_regions
shows "the device is clean" pmheap check "$ours"
shows "attach as JSON" is_there_as_json
shows "detach" pmheap detach pmheap0
shows "a line is damaged, and attach does not see it" damage_a_line
shows "check of the region in use finds it" finds_the_line
shows "and tells it as JSON" finds_it_as_json
shows "detach of the damaged region" pmheap detach pmheap0
shows "check at rest finds it, too" says 1 "(at $line)" pmheap check "$ours"
shows "repair mends it" pmheap repair "$ours" --yes
shows "then it is clean" pmheap check "$ours"
shows "--force formats the foreign device" pmheap format "$foreign" --force
shows "attach --all takes both" sh -c '[ "$(pmheap attach --all | wc -l)" -eq 2 ]'
shows "detach of both" sh -c 'pmheap detach pmheap0 && pmheap detach pmheap1'
echo "1..$n"
exit $status
