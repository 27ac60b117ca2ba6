# Completion for fish of the tool whose name this file is installed by. The options are those that --help tells, so no list of
# them has to be kept here.

# TOOL LETTER NAME VALUE TEXT
function __verbatim_option
    set -l spec -c $argv[1] -l $argv[3] -d (string replace -r ';.*' '' -- $argv[5])
    test -z "$argv[2]"; or set -a spec -s $argv[2]
    switch $argv[3]
        case fabric
            set -a spec -x -a 'verbs ofi auto'
        case device
            set -a spec -x -a '(path basename /sys/class/infiniband/* 2>/dev/null) tcp'
        case encrypt
            set -a spec -f -a 'no ask require'
        case compress
            set -a spec -f -a 'no auto 1 3 9 19'
        case wireup
            set -a spec -x -a 'auto cm tcp'
        case '*'
            switch $argv[4]
                case ''
                case '*FILE' '*PATH'
                    set -a spec -r -F
                case '*HOST'
                    set -a spec -x -a '(__fish_print_hostnames)'
                case '*COMMAND'
                    set -a spec -x -a '(__fish_complete_command)'
                case '*'
                    set -a spec -x
            end
    end
    complete $spec
end

function __verbatim_options
    set -l option
    for line in (command $argv[1] --help 2>/dev/null) ''
        if string match -qr '^  (?:    |-(?<letter>.), )--(?<name>[a-z0-9-]+)(?<value>\[=[A-Z]+\]| [A-Z]+)?(?: +(?<text>.*))?$' -- $line
            test -z "$option"; or __verbatim_option $argv[1] $option
            set option "$letter" "$name" (string replace -ra '[^A-Z]' '' -- "$value" | string collect -a) "$text"
        else if test -n "$option"; and string match -qr '^           +(?<more>.*)$' -- $line
            set option[4] "$option[4] $more"
        else if test -n "$option"
            __verbatim_option $argv[1] $option
            set option
        end
    end
end

set -l tool (string replace -r '\.fish$' '' -- (status basename))
__verbatim_options $tool
switch $tool
    case rdcp rdpipe
        complete -c $tool -a '(__fish_print_hostnames):'
    case rdsend rdinfo rdperf
        complete -c $tool -a '(__fish_print_hostnames)'
end
