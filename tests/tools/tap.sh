# shellcheck shell=bash disable=SC2034	# what is set here is used by those who source it
# For test scripts: runs the functions they name as tests, in TAP. Sourced with the build directory as $1.
#
#	. tap.sh
#	it_does_this() { ...; }		# runs under set -e in a subshell; its output is shown if it fails, and all NAME.err
#	run_tests it_does_this ...
#
# Whatever a test starts with `start` or & ends with it (so without timeout(1) around it, whose child would live on);
# $work is removed at the end.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$(cd "$here/../.." && pwd)
build=$(cd "${1:?usage: $0 BUILD_DIR}" && pwd)
examples=$build/examples
peer=$build/tests/tools/peer
work=$(mktemp -d "${TMPDIR:-/tmp}/verbatim-test-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
unset VB_FABRIC VB_WIREUP VB_DEVICE LD_LIBRARY_PATH # meson test sets the last, to the build under test
# Under a sanitizer: what libfabric forgets is no leak of ours.
export LSAN_OPTIONS=${LSAN_OPTIONS:+$LSAN_OPTIONS:}suppressions=$here/libfabric.supp

skip() { echo "$*"; exit 77; }
fail() { echo "failed: $*" >&2; exit 1; }

# await SECONDS COMMAND...: until it succeeds
await() {
	local deadline=$((SECONDS + $1 + 1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$deadline" ] || fail "waited in vain for: $*"
		pause
	done
}

# As long as `sleep 0.05`, without a process of its own: there are thousands
exec {never}<> <(:)
pause() { read -rt 0.05 -u "$never" _ || true; }

port_in() { [[ ! $(<"$1") =~ listening\ on\ port\ ([0-9]+) ]] || echo "${BASH_REMATCH[1]}"; }
listens() { [ -n "$(port_in "$1")" ] || ! kill -0 "$2"; }

# start NAME COMMAND...: a server in the background, its output in NAME.out and NAME.err; sets $port and $server
start() {
	local name=$1
	shift
	: >"$name.err" # what an earlier one said must not be taken for its words
	"$@" >"$name.out" 2>"$name.err" &
	server=$!
	await 10 listens "$name.err" "$server"
	port=$(port_in "$name.err")
	[ -n "$port" ] || { cat "$name.err"; fail "$1 does not listen"; }
}

# exits STATUS COMMAND...
exits() {
	local want=$1 status=0
	shift
	"$@" || status=$?
	[ "$status" -eq "$want" ] || fail "exit status $status, not $want: $*"
}

# ends STATUS PROCESS: within half a minute
ends() {
	await 30 gone "$2"
	exits "$1" wait "$2"
}
gone() { ! kill -0 "$1"; }

# says FILE REGEX...: each is in it
says() {
	local file=$1 regex
	shift
	for regex in "$@"; do
		grep -Eq -- "$regex" "$file" || { cat "$file"; fail "$(basename "$file") does not say: $regex"; }
	done
}

# lacks FILE REGEX: it is not in it
lacks() { ! grep -E -- "$2" "$1" || fail "$(basename "$1") says: $2"; }

one_line() { [ "$(wc -l <"$1")" -eq 1 ] || { cat "$1"; fail "$(basename "$1") is not one line"; }; }

seconds_since() { local ms=$(($(now_ms) - $1)); printf '%d.%02d s' $((ms / 1000)) $((ms % 1000 / 10)); }

now_ms() { echo $((${EPOCHREALTIME/[.,]/} / 1000)); }

end_jobs() {
	local pid
	for pid in $(jobs -p); do
		kill -KILL "$pid" 2>/dev/null || true
	done
	wait
}

# try_test NAME: in a new directory, its output in $work/log
try_test() {
	rm -rf "${work:?}/$1"
	mkdir "$work/$1"
	# Not as part of a condition, where set -e would not count.
	(
		set -e
		trap end_jobs EXIT
		cd "$work/$1"
		"$1"
	) >"$work/log" 2>&1
}

# Who fails is tried once more, as a busy machine may be the cause; tests/tap-sum tells both failures and second tries.
run_tests() {
	local name status number=0 failed=0 again began discarding=()
	echo "1..$#"
	for name in "$@"; do
		number=$((number + 1)) again="" began=$(now_ms)
		try_test "$name"
		status=$?
		if [ $status -ne 0 ] && [ $status -ne 77 ]; then
			tell_failure "$name"
			again=" AGAIN"
			try_test "$name"
			status=$?
		fi
		case $status in
		0)
			echo "ok $number - $name #$again $(seconds_since "$began")"
			discard "$name" &	# on a busy disk it may take as long as the test
			discarding+=($!)
			;;
		77) echo "ok $number - $name # SKIP $(tail -n 1 "$work/log")" ;;
		*)
			tell_failure "$name"
			echo "not ok $number - $name"
			failed=1
			;;
		esac
	done
	[ ${#discarding[@]} -eq 0 ] || wait "${discarding[@]}"	# not for servers that serve all tests
	exit $failed
}

discard() { chmod -R u+rwx "$work/$1" && rm -rf "${work:?}/$1"; } >/dev/null 2>&1

tell_failure() {
	echo "# $1 failed:"
	{ cat "$work/log"; (cd "$work/$1" && tail -n 5 -- *.err /dev/null); } 2>&1 | sed 's/^/# /'
}
