#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Proves that the VM runner tells good from bad: selftest.py [--short] [KERNEL...]

Prints TAP. Each test says in its name what it shows; most of them are runs that
must fail, as a runner that never fails proves nothing. The short form is for make
check, whose other suites show on both kernels what it leaves out.
"""

import subprocess
import sys
from pathlib import Path

import klog
import tap
from devices import Backing, Devices
from kernels import BUILD, FETCHED, Kernel
from vm import VM

SCRATCH = BUILD / "selftest"
MODULE = """// SPDX-License-Identifier: GPL-2.0-only
#include <linux/module.h>
#include <linux/crc32c.h>
static int number;
module_param(number, int, 0);
static int __init trivial_init(void)
{
	pr_info("trivial: number %d crc %x\\n", number, crc32c(~0, "a", 1));
	return 0;
}
static void __exit trivial_exit(void)
{
}
module_init(trivial_init);
module_exit(trivial_exit);
MODULE_DESCRIPTION("Proves that modules build and load");
MODULE_LICENSE("GPL");
"""


def expect(condition: bool, *what) -> None:
    if not condition:
        raise AssertionError(" ".join(map(str, what)))


def must_fail(kernel: str, name: str, script: str, reason: str, **options) -> None:
    result = VM(f"selftest-{name}-{kernel}", kernel=kernel, script=script, **options).run()
    expect(result.verdict == "fail", "judged", result)
    expect(reason in result.reason, f"expected {reason!r} in", result)


# --- without a VM

def the_kernel_log_judge_knows_findings_from_noise():
    for line in ("<4>[1.0] WARNING: CPU: 1 PID: 2 at mm/x.c:3", "<3>[1.0] x: broken", "[1.0] BUG: sleeping function",
                 "[1.0] ======\nWARNING: possible circular locking dependency", "<4>refcount_t: underflow",
                 "BUG: KFENCE: use-after-free read in x"):
        expect(klog.problem(line), "missed", line)
    for line in ("<4>[1.0] x: loading out-of-tree module", "<11>[1.0] said by a user", "[1.0] This is not a bug.",
                 "<6>[1.0] DEBUG: fine", "", "<6>[1.0] kfence: initialized - using 2097152 bytes"):
        expect(not klog.problem(line), "too strict with", line)
    expect(not klog.problem("<3>[1.0] Memory failure: 0x1", ("Memory failure",)), "the allow-list is ignored")


def race(*frames: str) -> list[str]:
    """A report of KCSAN as the kernel prints it, with these frames in both stacks."""
    ruler = "<3>[   12.345678] " + "=" * 66
    stack = [f"<3>[   12.345678]  {frame}" for frame in frames]
    return [ruler, f"<3>[   12.345678] BUG: KCSAN: data-race in {frames[0].split('+')[0]} / {frames[-1].split('+')[0]}",
            "<3>[   12.345678] ", "<3>[   12.345678] write to 0xffff88800a3c1c40 of 8 bytes by task 321 on cpu 1:", *stack,
            "<3>[   12.345678] ", "<3>[   12.345678] read to 0xffff88800a3c1c40 of 8 bytes by task 322 on cpu 0:", *stack,
            ruler]


def a_data_race_fails_if_and_only_if_a_frame_is_of_the_module():
    ours, core = "run_take+0x3c/0x120 [pmheap]", "tick_nohz_stop_tick+0x10e/0x3a0"
    other = "nd_pmem_probe+0x10/0x20 [nd_pmem]"
    quiet = ["<6>[1.0] pmheap: attached", "<6>[2.0] said after it"]
    for report in (race(ours), race(core, ours), race(ours, core), race("pmheap_ioctl+0x1/0x2 [pmheap]", other)):
        expect(klog.problems([quiet[0], *report, quiet[1]]), "missed", report)
        expect(klog.problems([*race(core), *report]), "missed behind a foreign one", report)
        expect(klog.problems([*report, *race(core)]), "missed before a foreign one", report)
        expect(klog.problems(report[:-1]), "missed because the log ends in it", report)
    for report in (race(core), race(core, other), race(core) + race(other)):
        expect(not klog.problems([quiet[0], *report, quiet[1]]), "too strict with", report)
    expect(klog.problems([*race(core), "<4>[3.0] WARNING: CPU: 0 PID: 1 at x.c:1"]), "a race hides what follows it")
    warning = race(core)[:1] + ["<4>[1.0] WARNING: possible circular locking dependency detected"] + race(core)[-1:]
    expect(klog.problems(warning), "another report between rulers is taken for a race")


def tap_counts_failures_skips_and_what_is_missing():
    counts = tap.parse(["TAP version 13", "1..3", "ok 1 a", "ok 2 b # SKIP no pmem", "    not ok 1 sub", "not ok 3 c"])
    expect((counts.passed, counts.failed, counts.skipped) == (1, 1, 1), counts)
    expect(counts.problem() is not None, "a failure is no problem")
    expect(tap.parse(["1..2", "ok 1 a"]).problem() is not None, "a missing result is no problem")
    two = tap.parse(["1..1", "ok 1 a", "1..1", "ok 1 b", "1..0 # SKIP c"])
    expect(two.problem() is None and two.passed == 2 and two.skipped == 1, two)


def an_nvdimm_of_a_wrong_size_is_refused():
    devices = Devices(nvdimms=[Backing(SCRATCH / "none.img", 128 << 20)])  # no room for the labels
    try:
        devices.prepare()
    except ValueError:
        return
    raise AssertionError(f"accepted {devices}")


# --- in a VM

def a_good_script_passes(kernel):
    script = "echo 1..2; echo ok 1 a; echo ok 2 b '# SKIP'; [ \"$WORD\" = 'it works' ] && echo yes >/dev/stderr"
    result = VM(f"selftest-good-{kernel}", kernel=kernel, script=script, env={"WORD": "it works"}).run()
    expect(result.verdict == "pass", result)
    expect(result.out[-1] == "yes" and result.tap.passed == result.tap.skipped == 1, result.out, result.tap)
    print(f"# minimal boot on {kernel}: {result.boot_seconds:.1f} s to the script, {result.seconds:.1f} s in all")


def a_failing_script_fails(kernel):
    must_fail(kernel, "exit", "exit 3", "exited with 3")


def a_failing_test_fails_though_the_script_exits_with_0(kernel):
    must_fail(kernel, "tap", "echo 1..2; echo ok 1; printf 'not ok 2 x'", "1 of 2 tests failed")


def a_panic_fails(kernel):
    must_fail(kernel, "panic", "echo c >/proc/sysrq-trigger; sleep 9", "Kernel panic")


def silence_fails(kernel):
    must_fail(kernel, "silent", "poweroff -f", "without a verdict")


def a_hang_times_out(kernel):
    must_fail(kernel, "hang", "while :; do :; done", "timeout after 8 s", timeout=8)


def a_kernel_warning_fails(kernel):
    must_fail(kernel, "warning", "echo '<4>WARNING: CPU: 0 PID: 1 at x.c:1' >/dev/kmsg", "WARNING: CPU")


def a_module_builds_and_loads_with_what_it_needs(kernel):
    source = SCRATCH / f"module-{kernel}"
    source.mkdir(parents=True, exist_ok=True)
    (source / "trivial.c").write_text(MODULE)
    (source / "Kbuild").write_text("obj-m := trivial.o\n")
    headers = Kernel(kernel).dir / "headers"
    subprocess.run(["make", "-s", "-C", headers, f"M={source}", "modules"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    script = "set -e; dmesg | grep 'trivial: number 7'; bash -c 'echo $BASH_VERSION'; rmmod trivial"
    result = VM(f"selftest-module-{kernel}", kernel=kernel, script=script, put=[("/bin/bash", "/bin/bash")],
                modules=[f"{source}/trivial.ko number=7"]).run()
    expect(result.verdict == "pass", result)


def memory_keeps_what_was_stored_before_a_power_cut(kernel):
    nvdimm, virtio = SCRATCH / f"nvdimm-{kernel}.img", SCRATCH / f"virtio-{kernel}.img"
    nvdimm.unlink(missing_ok=True)
    virtio.unlink(missing_ok=True)
    devices = {"nvdimms": [f"{nvdimm}:34M"], "virtio_pmems": [f"{virtio}:32M"], "memmaps": ["16M", "32M"]}
    store = """set -e
        set -- $NVDIMMS $VIRTIO_PMEMS; [ $# = 2 ]
        set -- $MEMMAPS; [ "$(cat /sys/block/${1#/dev/}/size)" = 32768 ]; [ $# = 2 ]
        [ "$(cat /sys/bus/nd/devices/namespace0.0/mode)" = memory ]
        for dev in $NVDIMMS $VIRTIO_PMEMS; do
            [ "$(cat /sys/block/${dev#/dev/}/queue/dax)" = 1 ]
            echo "kept on ${dev##*/}" | dd of=$dev conv=fsync 2>/dev/null
        done
        echo stored >/dev/ack
        sleep 60"""
    result = VM(f"selftest-store-{kernel}", kernel=kernel, script=store, **devices).run(cut_at=1)
    expect(result.verdict == "cut" and result.acks == ["stored"], result)
    load = "set -e; for dev in $NVDIMMS $VIRTIO_PMEMS; do head -n1 $dev | grep \"^kept on ${dev##*/}$\"; done"
    result = VM(f"selftest-load-{kernel}", kernel=kernel, script=load, **devices).run()
    expect(result.verdict == "pass" and len(result.out) == 2, result)


def a_cut_at_an_acknowledgement_leaves_a_prefix(kernel):
    script = "read first </dev/cmd; i=$first; while :; do echo $i >/dev/ack; i=$((i+1)); done"
    vm = VM(f"selftest-cut-{kernel}", kernel=kernel, script=f"echo ready; {script}", timeout=60)
    result = vm.run(on_line=lambda line: vm.send("100"), cut_at=2000)
    expect(result.verdict == "cut", result)
    expect(len(result.acks) >= 2000, len(result.acks), "acknowledgements")
    expect(result.acks == [str(100 + i) for i in range(len(result.acks))], "not a prefix:", result.acks[-3:])


ON_HOST = (the_kernel_log_judge_knows_findings_from_noise, a_data_race_fails_if_and_only_if_a_frame_is_of_the_module,
           tap_counts_failures_skips_and_what_is_missing, an_nvdimm_of_a_wrong_size_is_refused)
IN_VM = (a_good_script_passes, a_failing_script_fails, a_failing_test_fails_though_the_script_exits_with_0,
         a_panic_fails, silence_fails, a_hang_times_out, a_kernel_warning_fails,
         a_module_builds_and_loads_with_what_it_needs, memory_keeps_what_was_stored_before_a_power_cut,
         a_cut_at_an_acknowledgement_leaves_a_prefix)
SHORT = (a_good_script_passes, a_failing_script_fails, a_failing_test_fails_though_the_script_exits_with_0,
         a_panic_fails, silence_fails, a_kernel_warning_fails, a_cut_at_an_acknowledgement_leaves_a_prefix)


def main(arguments: list[str]) -> int:
    short = "--short" in arguments
    kernels = [name for name in arguments if name != "--short"] or list(FETCHED[:1] if short else FETCHED)
    SCRATCH.mkdir(parents=True, exist_ok=True)
    in_vm = SHORT if short else IN_VM
    tests = [(test, ()) for test in ON_HOST] + [(test, (kernel,)) for kernel in kernels for test in in_vm]
    print(f"TAP version 13\n1..{len(tests)}")
    failed = 0
    for number, (test, arguments) in enumerate(tests, 1):
        name = " ".join([test.__name__.replace("_", " "), *(f"({kernel})" for kernel in arguments)])
        try:
            test(*arguments)
            print(f"ok {number} {name}", flush=True)
        except (AssertionError, OSError, LookupError, ValueError, subprocess.CalledProcessError) as error:
            failed += 1
            print(f"not ok {number} {name}\n# {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
