# SPDX-License-Identifier: GPL-2.0-only
#
# The human entry; it only delegates. make help tells.

KERNEL ?= 6.1
KERNELS := 6.1 6.12
BUILD := $(CURDIR)/build
MAKEFLAGS += --no-print-directory

all: user modules

user: deps
	@qemu-test/deps.sh @user
	+@$(MAKE) -C libuser O=$(BUILD)/libuser

modules: $(KERNELS:%=module-%)

module: module-$(KERNEL)

module-%:
	+@qemu-test/module.sh $* $(BUILD)/kmod-$*

# Also what the recipes themselves need, such as python3.
check check-debug fuzz coverage run shell kselftest-tree: deps

deps:
	@qemu-test/deps.sh @build

check:
	@selftests/check/check.py $(SUITES)

check-debug:
	@qemu-test/debug.py

run:
	@qemu-test/run.py --kernel $(KERNEL)

crash: deps
	@selftests/check/crash.py

shell:
	@qemu-test/shell.py --kernel $(KERNEL)

install: user
	+@$(MAKE) -C libuser O=$(BUILD)/libuser install

# Long; make check runs each for a minute.
FUZZ ?= image ops
SECONDS ?= 3600
fuzz:
	@qemu-test/deps.sh @check
	+@$(MAKE) -s -C selftests/fuzz
	@for fuzz in $(FUZZ); do selftests/fuzz/fuzz.py run $$fuzz --seconds $(SECONDS) || exit 1; done

coverage:
	@qemu-test/deps.sh @check @coverage
	@selftests/fuzz/coverage.py --lines

kselftest-tree:
	@selftests/abi/tree.sh $(BUILD)/kselftest-tree

clean:
	[ ! -d build ] || find build -mindepth 1 -maxdepth 1 ! -name cache -exec rm -rf {} +

help:
	@echo "make            the library, the command, the examples, and the module for kernels $(KERNELS)"
	@echo "make run        the demonstration in a VM: real input, a power cut, recovery, queries"
	@echo "make check      all tests; SUITES='core lib' picks some"
	@echo "make crash      the crash lab in full: some 20 minutes"
	@echo "make fuzz [FUZZ=image|ops] [SECONDS=3600]    hostile images, and random operations, on the engine"
	@echo "make coverage   which lines of the engine the tests reach"
	@echo "make check-debug    the tests in VMs on kernels with KASAN, lockdep, kmemleak, UBSAN, failures; and KCSAN"
	@echo "make shell      a shell in a VM with a region attached"
	@echo "make module KERNEL=6.1|6.12     the module alone, in build/kmod-KERNEL/"
	@echo "make install [PREFIX=/usr/local] [DESTDIR=]    the library, the command, the manual"
	@echo "make kselftest-tree             the ABI's tests inside a kernel's tools/testing/selftests"
	@echo "make clean      removes build/ but for the fetched kernels in build/cache/"

.PHONY: all deps user modules module check check-debug crash fuzz coverage run shell install kselftest-tree clean help
