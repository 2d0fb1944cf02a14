# SPDX-License-Identifier: GPL-2.0-only
#
# Sourced by scripts in the guest: tests that are commands. Ends with: echo "1..$n"; exit $status
n=0 status=0

shows() { # WHAT COMMAND...
	what=$1
	shift
	n=$((n + 1))
	if "$@" >/tmp/said 2>&1; then
		echo "ok $n - $what"
	else
		status=1
		echo "not ok $n - $what"
		sed 's/^/# /' /tmp/said
	fi
}

# Ends with this exit code, and says this.
says() { # CODE TEXT COMMAND...
	code=$1 text=$2
	shift 2
	"$@" >/tmp/answer 2>&1 </dev/null
	rc=$?
	cat /tmp/answer
	echo "status $rc, should be $code: $text"
	[ $rc -eq "$code" ] && grep -q -e "$text" /tmp/answer
}
