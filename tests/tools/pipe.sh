# shellcheck shell=bash disable=SC2034	# what is set here is used by those who source it
# For tests of rdsend and rdrecv; sourced after tap.sh.
rdsend=$build/tools/rdsend
rdrecv=$build/tools/rdrecv
export VB_FABRIC=ofi
unset VB_KEY

# refuses STATUS REGEX COMMAND...: one line on stderr that says so, nothing on stdout
refuses() {
	local status=$1 regex=$2
	shift 2
	exits "$status" timeout 20 "$@" >refused.out 2>refused.err </dev/null
	[ ! -s refused.out ] || fail "it wrote to stdout: $*"
	one_line refused.err
	says refused.err "^rd(send|recv): .*$regex"
}
misused() { refuses 1 "$1.*try 'rd(send|recv) --help'" "${@:2}"; }

# receive ARGUMENT...: an rdrecv at a free port; sets $server, $port
receive() {
	rm -f receiver.err
	start receiver "$rdrecv" -v --bind 127.0.0.1 "$@"
}

# sends STATUS ARGUMENT...: rdsend to it, with stdin as it is
sends() {
	local status=$1
	shift
	exits "$status" timeout 20 "$rdsend" "$@" >sender.out 2>sender.err
}
