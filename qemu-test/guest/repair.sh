#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# pmheap repair on devices: an NVDIMM that the module attaches before and after, a virtio-pmem, a loop device. TAP.
pmem=$NVDIMMS other=$VIRTIO_PMEMS
undo=/tmp/undo packages=300

. /test/tap.sh

# A copy and diffutils' cmp: a checksum of a device takes twenty times as long here.
keep() { cat "$dev" >/tmp/kept; }
is_as_kept() { /test/cmp "$dev" /tmp/kept; }

# ---- damage ----

word_at() { dd if="$dev" bs="$2" skip=$(($1 / $2)) count=1 2>/dev/null | od -A n -t "u$2" | tr -d ' '; }

flip() { # OFFSET
	# shellcheck disable=SC2059  # an octal escape
	printf "\\$(printf %o $(($(word_at "$1" 1) ^ 4)))" | dd of="$dev" bs=1 seek="$1" conv=notrunc 2>/dev/null
}

wipe() { # OFFSET of a line
	head -c 64 /dev/zero | tr '\0' '\245' | dd of="$dev" bs=64 seek=$(($1 / 64)) conv=notrunc 2>/dev/null
}

# Where things are, while they are whole: the pool of the first slot, its block, the root of its names.
find_places() {
	slot=$(word_at 152 8) chunks=$(word_at 160 8) pages=$(word_at 168 8)
	block=$(word_at $((slot + 4)) 4)
	root=$(word_at $((block * 4096 + 64 + 12)) 4)
	entry=$((root * 4096 + 2 * 64))
	while [ "$(word_at "$entry" 8)" = 0 ] && [ $entry -lt $(((root + 1) * 4096)) ]; do entry=$((entry + 5 * 64)); done
	# The state of a chunk is the first byte of its line.
	owned=1
	while [ "$(word_at $((chunks + owned * 64)) 1)" != 2 ] && [ $owned -lt 14 ]; do owned=$((owned + 1)); done
	echo "owned $owned, slot $slot, chunks $chunks, pages $pages, block $block, root $root, entry $entry"
	[ "$block" -gt 0 ] && [ "$root" -gt 0 ]
}

# A bit in each: superblock, slot, chunk of a pool, its page 0 and a page with objects, head of the pool, name.
flip_bits() {
	for at in 136 "$slot" $((chunks + owned * 64)) $((pages + owned * 512 * 64)) $((pages + owned * 512 * 64 + 192)) \
		$((block * 4096 + 16)) $((root * 4096 + 68)) $((entry + 16)); do
		flip "$at"
	done
}

# Whole lines that cost nothing.
wipe_lines() {
	for at in 128 "$slot" $((chunks + owned * 64)) "$pages" $((root * 4096 + 64)); do wipe "$at"; done
}

# More of them, apart from the others: what they are rebuilt from must be whole.
wipe_block() {
	for at in "$chunks" $((pages + block * 64)) $((block * 4096)); do wipe "$at"; done
}

wipe_name() { wipe "$entry"; }

# ---- what is there ----

make_graph() { awk -v n=$packages 'BEGIN { for (i = 0; i < n; i++) printf "package%d\tpackage%d,package%d\n", i, i / 2, i * 7 % n }' >/tmp/graph; }

fill() {
	pmheap format "$dev" && pmheap attach "$dev" && pmheap create pmheap0 packages && pmheap create pmheap0 second &&
		depgraph load pmheap0 packages /tmp/graph --ack /tmp/acks && hello pmheap0 &&
		pmheap objects pmheap0 packages >/tmp/objects && pmheap names pmheap0 packages >/tmp/names &&
		grep -q depgraph /tmp/names && pmheap detach pmheap0
}

all_is_served() {
	pmheap attach "$dev" || return 1
	depgraph verify pmheap0 packages /tmp/graph /tmp/acks && pmheap objects pmheap0 packages | cmp - /tmp/objects &&
		pmheap names pmheap0 packages | cmp - /tmp/names && pmheap names pmheap0 hello | grep counter &&
		pmheap list pmheap0 | grep second
	all=$?
	pmheap detach pmheap0 && return $all
}

# All names but one, and all objects: those without a name, too.
all_but_a_name() {
	pmheap attach "$dev" || return 1
	pmheap names pmheap0 packages | grep -vxFf - /tmp/names >/tmp/gone
	pmheap objects pmheap0 packages | cmp - /tmp/objects && [ "$(wc -l </tmp/gone)" -eq 1 ] &&
		pmheap names pmheap0 hello | grep counter
	all=$?
	cat /tmp/gone
	pmheap detach pmheap0 && return $all
}

# ---- repair ----

comes_back() { # the undo file gives back what was there
	pmheap repair "$dev" --revert $undo && is_as_kept
}

repairs() { rm -f $undo; says 0 "written; " pmheap repair "$dev" --yes --undo $undo; }

# Damaged by one of the above: told, not written, repaired, taken back, repaired again.
goes_through() { # WHAT DAMAGE SERVED
	$2
	keep
	shows "$1: check finds damage" says 1 damage pmheap check "$dev"
	shows "$1: repair without --yes says what it would do" says 1 "--yes writes" pmheap repair "$dev" --undo $undo
	shows "$1: and writes nothing" is_as_kept
	shows "$1: with --yes it is repaired" repairs
	shows "$1: check is clean" says 0 clean pmheap check "$dev"
	shows "$1: the undo file gives every byte back" comes_back
	shows "$1: it is repaired again" repairs
	shows "$1: a second repair has nothing to do" says 0 clean pmheap repair "$dev" --yes
	[ -z "$3" ] || shows "$1: the module serves what is not damaged" "$3"
}

# As soon as the undo file is there, some way into it or into the writing.
killed() { # MICROSECONDS
	rm -f $undo
	pmheap repair "$dev" --yes --undo $undo >/tmp/killed 2>&1 &
	until [ -e $undo ] || ! kill -0 $! 2>/dev/null; do :; done
	usleep "$1"
	kill -KILL $!
	wait $!
	[ $? -eq 137 ] && early=$((early + 1))
}

# Killed at many places: what the undo file holds if it is whole is the way back, and the next repair the way on.
survives_kills() {
	early=0
	for delay in 0 5000; do
		wipe_lines
		keep
		killed $delay
		if grep -q ^end $undo; then
			pmheap repair "$dev" --revert $undo --force && is_as_kept || return 1
			killed $delay
		else
			says 2 "not a whole undo file" pmheap repair "$dev" --revert $undo && is_as_kept || return 1
		fi
		pmheap repair "$dev" --yes --undo $undo.2 >/tmp/second || return 1
		rm -f $undo.2
		pmheap check "$dev" || return 1
	done
	echo "$early of at most 4 repairs were killed before their end"
	[ $early -gt 0 ]
}

refuses_when_attached() {
	pmheap attach "$dev" && says 2 "in use (attached" pmheap repair "$dev" --yes --undo $undo &&
		says 2 "a device that is not attached" pmheap repair pmheap0 --yes --undo $undo &&
		says 2 "in use (attached" pmheap repair "$dev" --revert "$1" && pmheap detach pmheap0
}

refuses_read_only() {
	blockdev --setro "$dev"
	says 1 "read-only; nothing is written" pmheap repair "$dev" --yes --undo $undo &&
		says 1 damage pmheap check "$dev" && [ ! -e $undo ]
	refused=$?
	blockdev --setrw "$dev"
	is_as_kept && return $refused
}

refuses_without_undo() {
	mkdir -p /tmp/full && mount -t tmpfs -o size=4k tmpfs /tmp/full
	dd if=/dev/zero of=/tmp/full/fill bs=4096 count=2 2>/dev/null
	says 1 "No space left on device; nothing is written" pmheap repair "$dev" --yes --undo /tmp/full/undo &&
		is_as_kept && [ ! -e /tmp/full/undo ]
	refused=$?
	umount /tmp/full
	return $refused
}

counts_on() { # REGION RUN
	[ "$(hello "$1")" = "run $2" ]
}

on_pmem() {
	dev=$pmem
	make_graph
	shows "a region with pools, objects and names" fill
	[ $status -eq 0 ] || return
	shows "its lines are found" find_places
	goes_through "bits" flip_bits all_is_served
	cp $undo /tmp/undo.bits
	shows "an attached device is left alone" refuses_when_attached /tmp/undo.bits
	goes_through "lines" wipe_lines all_is_served
	goes_through "a pool's block" wipe_block all_is_served
	shows "a repair that is killed goes back, and on" survives_kills
	shows "after all that the module serves everything" all_is_served
	wipe_lines
	rm -f $undo
	keep
	shows "a read-only device is left alone" refuses_read_only
	shows "no room for the undo file: nothing is written" refuses_without_undo
	shows "with room it is repaired" repairs
	goes_through "a name" wipe_name all_but_a_name
}

on_virtio() {
	dev=$other
	shows "virtio-pmem: a region" sh -c "pmheap format $dev && pmheap attach $dev && hello pmheap0 && pmheap detach pmheap0"
	find_places >/dev/null
	goes_through "virtio-pmem, lines" wipe_lines
	shows "virtio-pmem: attach" pmheap attach "$dev"
	shows "virtio-pmem: the program goes on" counts_on pmheap0 2
	shows "virtio-pmem: detach" pmheap detach pmheap0
}

on_loop() {
	dev=/dev/loop0
	shows "loop: a region in a file" sh -c "pmheap format file:/tmp/image --size 16M && hello file:/tmp/image && losetup $dev /tmp/image"
	find_places >/dev/null
	# Not all of goes_through: each page that is looked at is a request of its own there, and takes long.
	wipe_lines
	shows "loop: check finds damage" says 1 damage pmheap check $dev
	shows "loop: it is repaired" repairs
	shows "loop: check is clean" says 0 clean pmheap check $dev
	shows "loop: let go" losetup -d $dev
	shows "loop: the program goes on in the file" counts_on file:/tmp/image 2
}

on_pmem
on_virtio
on_loop
echo "1..$n"
exit $status
