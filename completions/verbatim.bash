# shellcheck shell=bash disable=SC2207
# Completion for bash of all tools. The options are those that --help tells, so no list of them has to be kept here.

# TOOL: "-k|--key-file| FILE" for each option; the first and the last may be empty, "[=WHEN]" can be left out
_verbatim_options() {
	"$1" --help 2>/dev/null | sed -nE 's/^  (    |(-.), )(--[a-z0-9-]+)(\[=[A-Z]+\]| [A-Z]+)?( .*|$)/\2|\3|\4/p'
}

# Hosts that ssh knows by name: in its configuration, and of known hosts those that are not hashed.
_verbatim_hosts() {
	local file word files=("$HOME/.ssh/config" /etc/ssh/ssh_config)
	for file in "${files[@]}"; do
		[ -r "$file" ] || continue
		while read -r word; do
			[[ $word == [/~]* ]] || word="$HOME/.ssh/$word"
			files+=($(compgen -G "${word/#~\//$HOME/}"))
		done < <(awk 'tolower($1) == "include" { for (i = 2; i <= NF; i++) print $i }' "$file")
	done
	{
		for file in "${files[@]}"; do
			[ ! -r "$file" ] || awk '{ sub(/=/, " ") } tolower($1) == "host" { for (i = 2; i <= NF; i++) print $i }' "$file"
		done
		for file in "$HOME/.ssh/known_hosts" /etc/ssh/ssh_known_hosts; do
			[ ! -r "$file" ] || awk '!/^[#@|]/ { gsub(/\[|\](:[0-9]+)?/, "", $1); gsub(/,/, "\n", $1); print $1 }' "$file"
		done
	} | grep -v '[*?!]' | sort -u
}

# OPTION VALUE: what it may be
_verbatim_values() {
	case $1 in
	--fabric) echo verbs ofi auto ;;
	--device) ls /sys/class/infiniband 2>/dev/null; echo tcp ;;
	--encrypt) echo no ask require ;;
	--compress) echo no auto 1 3 9 19 ;;
	--wireup) echo auto cm tcp ;;
	--bind) hostname -I 2>/dev/null ;;
	--jump) _verbatim_hosts ;;
	*) [[ $2 != *HOST* ]] || _verbatim_hosts ;;
	esac
}

# OPTION VALUE WORD
_verbatim_value() {
	case $2 in
	*FILE* | *PATH*)
		compopt -o filenames 2>/dev/null
		COMPREPLY=($(compgen -f -- "$3"))
		;;
	*COMMAND*) COMPREPLY=($(compgen -c -- "$3")) ;;
	*) COMPREPLY=($(compgen -W "$(_verbatim_values "$1" "$2")" -- "$3")) ;;
	esac
}

_verbatim_files() {
	compopt -o filenames 2>/dev/null
	COMPREPLY=($(compgen -f -- "$1"))
}

# TOOL NUMBER WORD KEYLESS: the argument of that number
_verbatim_argument() {
	case $1:$2 in
	rdsend:1 | rdinfo:1 | rdperf:1) COMPREPLY=($(compgen -W "$(_verbatim_hosts)" -- "$3")) ;;
	rdcp:*)
		[[ $3 == */* || $3 == *:* ]] || COMPREPLY=($(compgen -S : -W "$(_verbatim_hosts)" -- "$3"))
		if [ ${#COMPREPLY[@]} -gt 0 ]; then
			compopt -o nospace 2>/dev/null
			COMPREPLY+=($(compgen -f -- "$3"))
		elif [[ $3 != *:* ]]; then
			_verbatim_files "$3"
		fi
		;;
	rdpipe:*)
		[[ $3 == *:* ]] || COMPREPLY=($(compgen -S : -W "$(_verbatim_hosts)" -- "$3"))
		compopt -o nospace 2>/dev/null
		;;
	rdsend:*) [ "$2" -lt $((4 - $4)) ] || _verbatim_files "$3" ;;
	rdrecv:*) [ "$2" -lt $((3 - $4)) ] || _verbatim_files "$3" ;;
	esac
}

_verbatim() {
	local tool=${1##*/} line=${COMP_LINE:0:COMP_POINT} word letter name value number=1 keyless=0 pending="" options words
	read -ra words <<<"$line"
	[[ $line != *[[:space:]] ]] || words+=("")
	local current=${words[-1]}
	COMPREPLY=()
	[ -z "${VB_KEY:-}" ] || keyless=1
	options=$(_verbatim_options "$1")
	for word in "${words[@]:1:${#words[@]}-2}"; do
		[ -z "$pending" ] || { pending="" && continue; }
		[[ $word != -- ]] || { COMPREPLY=($(compgen -c -f -- "$current")) && return; }
		[[ $word != -k* && $word != --key-file* ]] || keyless=1
		if [[ $word == -?* ]]; then
			pending=$(awk -F '|' -v word="$word" '($1 == word || $2 == word) && $3 ~ /^ / { print $2 "|" $3 }' <<<"$options")
		else
			number=$((number + 1))
		fi
	done
	if [ -n "$pending" ]; then
		_verbatim_value "${pending%%|*}" "${pending#*|}" "$current"
	elif [[ $current == --*=* ]]; then
		value=$(awk -F '|' -v word="${current%%=*}" '$2 == word { print $3 }' <<<"$options")
		_verbatim_value "${current%%=*}" "$value" "${current#*=}"
	elif [[ $current == -* ]]; then
		while IFS='|' read -r letter name value; do
			COMPREPLY+=($(compgen -W "$letter $name" -- "$current"))
		done <<<"$options"
	else
		_verbatim_argument "$tool" "$number" "$current" "$keyless"
	fi
}

complete -F _verbatim rdsend rdrecv rdcp rdpipe rdinfo rdperf
