#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs a test script in a virtual machine and judges it.

    from vm import VM
    result = VM("name", kernel="6.1", script=Path("test.sh")).run()

A run passes only if the guest says so on a side channel, with a token made for
this boot; the script exited with 0; its TAP, if any, is whole and free of
failures; and the kernel log is clean. Silence, panic, timeout and noise all
fail. A run whose power was cut on purpose ends as "cut" under the same laws,
save that it owes no verdict.

The test finds /dev/ack (a line written there reaches ON_ACK on the host, which
may cut the power) and /dev/cmd (reads what send() sends), and in its environment
NVDIMMS, MEMMAPS and VIRTIO_PMEMS: the /dev/pmemN of each kind.
"""

import argparse
import fcntl
import secrets
import subprocess
import sys
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import accel
from devices import Backing, Devices, parse_size
from initramfs import Initramfs
from kernels import BUILD, HERE, Kernel
from qemu import Qemu, guarded
from result import Result, judge
from transcript import Transcript

# The side channel's drivers; built into some kernels.
CHANNEL_MODULES = ("virtio_pci", "virtio_console")
# A panic ends QEMU, by way of -no-reboot, and an oops is a panic: no wait for the timeout. On a busy host the
# kernel's test of its timer finds none and says so; the timer is there.
KERNEL_ARGS = "console=ttyS0 quiet panic=-1 oops=panic log_buf_len=1M no_timer_check"


class VM:
    """A machine to boot, once or several times; its files are in build/vm/NAME/.

    script          a Path, or the text itself
    nvdimms, virtio_pmems   "FILE:SIZE" each, made when missing, kept otherwise
    memmaps         sizes of legacy persistent ranges, which lose their content with the VM
    map_mode        where a new NVDIMM namespace has its struct pages: "mem" or "dev"
    put             (host path, guest path) pairs; directories with all below, programs with their libraries
    modules         our own: "PATH.ko [parameter=value...]", loaded, with the in-tree ones they need
    kernel_modules  in-tree ones by name, loaded with what they need
    env             more variables for the script
    append          more of the kernel command line
    allow           regular expressions for kernel messages that this test provokes
    accelerator     "auto", "tcg", "tcg,thread=single", "kvm"
    qemu_args       more arguments for QEMU
    """

    def __init__(self, name: str, *, kernel: str = "6.1", script: Path | str = "true\n", memory="1G", cpus: int = 2,
                 nvdimms=(), virtio_pmems=(), memmaps=(), map_mode: str = "mem", put=(), modules=(),
                 kernel_modules=(), env=None, append: str = "", timeout: float = 120, allow=(),
                 accelerator: str = "auto", cpu: str | None = None, qemu_args=()):
        subprocess.run([HERE / "deps.sh", "@run"], check=True)
        self.name, self.kernel, self.script = name, Kernel(kernel), script
        self.devices = Devices(parse_size(memory), [Backing.parse(text) for text in nvdimms],
                               [Backing.parse(text) for text in virtio_pmems], [parse_size(size) for size in memmaps])
        self.cpus, self.map_mode, self.append, self.timeout = cpus, map_mode, append, timeout
        self.put, self.modules, self.kernel_modules = tuple(put), tuple(modules), tuple(kernel_modules)
        self.env, self.allow, self.qemu_args = dict(env or {}), tuple(allow), tuple(qemu_args)
        self.accelerator = accelerator if accelerator != "auto" else accel.choose(self._comes_up)
        self.cpu = cpu or accel.cpu(self.accelerator)
        self.directory = BUILD / "vm" / name
        self._qemu: Qemu | None = None
        self._cut = False

    def run(self, on_ack=None, on_line=None, cut_at: int | None = None) -> Result:
        """Boots, runs the script, judges.

        ON_ACK and ON_LINE get each line of /dev/ack and of the script's output.
        CUT_AT cuts the power at that many acknowledgements; those that had left
        the guest by the time it died are in the result as well.
        """
        hooks = {"ack": on_ack, "out": on_line}
        token, self._cut = secrets.token_hex(8), False
        with self._occupied(), (self.directory / "console.log").open("w", buffering=1) as log:
            self._pack(TOKEN=token)
            transcript = Transcript(token, log)
            with closing(Qemu(self._arguments(), self.directory)) as self._qemu:
                for stream, line in self._qemu.lines(self.timeout):
                    if transcript.take(stream, line) and (hook := hooks[stream]):
                        hook(line)
                    if transcript.complete:
                        self._qemu.kill()
                    elif len(transcript.acks) == cut_at and not self._cut:
                        self.cut()
        transcript.save(self.directory)
        return judge(self, self._qemu, transcript, cut_at)

    def interact(self) -> int:
        """A shell on this terminal, Ctrl-A X quits; the script is there, but not run."""
        with self._occupied():
            self._pack(INTERACTIVE="1")
            return subprocess.call(guarded([*self._arguments(), "-serial", "mon:stdio"]))

    # For callbacks and other threads, while the machine runs:

    def cut(self) -> None:
        """Cuts the power."""
        self._cut = True
        self._qemu.kill()

    @property
    def was_cut(self) -> bool:
        return self._cut

    def send(self, line: str) -> None:
        """Says a line to whoever reads /dev/cmd in the guest."""
        self._qemu.ack.send(line)

    def qmp(self, command: str, **arguments):
        return self._qemu.qmp.command(command, **arguments)

    def monitor(self, line: str) -> str:
        """A command of QEMU's human monitor."""
        return self._qemu.qmp.human(line)

    @contextmanager
    def _occupied(self):
        """Two machines must not write to one directory, nor to one backing file."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.devices.prepare()
        paths = [self.directory / "lock", *(backing.path for backing in self.devices.backings)]
        with ExitStack() as stack:
            for path in paths:
                lock = stack.enter_context(path.open("a"))
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise RuntimeError(f"vm {self.name}: another machine uses {path}") from None
            yield

    def _comes_up(self, accelerator: str, seconds: float) -> bool:
        probe = VM(f"probe-{accelerator}", kernel=self.kernel.name, accelerator=accelerator, timeout=seconds)
        return probe.run().verdict == "pass"

    def _pack(self, **settings: str) -> None:
        image = Initramfs(self.kernel)
        image.settings("vm.conf", MAP=self.map_mode, PMEMS=self.devices.count, **settings)
        image.settings("test.env", **self.env)
        image.load_kernel_modules([*CHANNEL_MODULES, *self.devices.modules(), *self.kernel_modules])
        if self.devices.nvdimms:
            image.put(Path("/usr/bin/ndctl"), "/usr/bin/ndctl")
        for host, guest in self.put:
            image.put(Path(host), guest)
        for module in self.modules:
            image.load_own_module(module)
        image.script(self.script.read_bytes() if isinstance(self.script, Path) else self.script.encode())
        image.write(self.directory / "initramfs.cpio")

    def _arguments(self) -> list[str]:
        return [
            "-machine", "q35" + (",nvdimm=on" if self.devices.nvdimms else ""),
            "-accel", self.accelerator, "-cpu", self.cpu, "-smp", str(self.cpus),
            "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-kernel", str(self.kernel.image), "-initrd", str(self.directory / "initramfs.cpio"),
            "-append", " ".join([KERNEL_ARGS, *self.devices.kernel_args(), self.append]),
            *self.devices.qemu_args(), *self.qemu_args,
        ]


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs a test script in a virtual machine; exits with 0 if it passes.")
    add = parser.add_argument
    add("--name", help="directory below build/vm/ (default: the script's name and the kernel)")
    add("--kernel", default="6.1", help="6.1, 6.12, NAME of build/cache/kernel-NAME, or a directory")
    add("--script", type=Path, help="what to run in the guest")
    add("--interactive", action="store_true", help="a shell instead; Ctrl-A X quits")
    add("--memory", default="1G")
    add("--cpus", type=int, default=2)
    add("--nvdimm", dest="nvdimms", action="append", default=[], metavar="FILE:SIZE")
    add("--virtio-pmem", dest="virtio_pmems", action="append", default=[], metavar="FILE:SIZE")
    add("--memmap", dest="memmaps", action="append", default=[], metavar="SIZE")
    add("--map", dest="map_mode", choices=("mem", "dev"), default="mem")
    add("--put", action="append", default=[], metavar="HOST:GUEST")
    add("--module", dest="modules", action="append", default=[], metavar="'PATH.ko PARAM=VALUE...'")
    add("--kmod", dest="kernel_modules", action="append", default=[], metavar="NAME")
    add("--env", action="append", default=[], metavar="NAME=VALUE")
    add("--append", default="", help="more kernel arguments")
    add("--allow", action="append", default=[], metavar="REGEX", help="kernel message that the test provokes")
    add("--accel", dest="accelerator", default="auto")
    add("--timeout", type=float, default=120)
    add("--qemu-arg", dest="qemu_args", action="append", default=[])
    options = vars(parser.parse_args())

    interactive, script = options.pop("interactive"), options.pop("script")
    if not interactive and not script:
        parser.error("--script or --interactive is needed")
    name = options.pop("name") or f"{script.stem if script else 'shell'}-{Path(options['kernel']).name}"
    options["put"] = [pair.rsplit(":", 1) for pair in options["put"]]
    options["env"] = dict(pair.split("=", 1) for pair in options["env"])
    try:
        vm = VM(name, script=script or "true\n", **options)
        if interactive:
            return vm.interact()
        result = vm.run(on_line=lambda line: print(line, flush=True))
    except (OSError, ValueError, LookupError, RuntimeError) as error:
        sys.exit(f"vm.py: {error}")
    print(result, file=sys.stderr)
    return 0 if result.ok else 1


if __name__ == "__main__":
    sys.exit(main())
