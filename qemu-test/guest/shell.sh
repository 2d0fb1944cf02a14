# SPDX-License-Identifier: GPL-2.0-only
#
# What the shell of make shell begins with: a region on the NVDIMM, formatted when it is new.
unset ENV
export PATH=/test/bin:$PATH
pmheap info "$NVDIMMS" >/dev/null 2>&1 || pmheap format "$NVDIMMS" --label shell
pmheap attach "$NVDIMMS"
cat <<END

pmheap1 is an emulated NVDIMM: what is in it stays in build/shell/nvdimm.img. pmheap0 is RAM and goes with the VM.
Commands: pmheap (try "pmheap list"), hello pmheap1, depgraph. Ctrl-A X, or poweroff -f, ends it.
END
pmheap list
