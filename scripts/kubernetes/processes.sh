# Background processes of a cluster: started apart from the terminal, ended by the number that was recorded and by nothing else.
# A number may be in use again after a crash, so the start time of the process is recorded with it.

start_time() {  # of a living process; one that ended and waits for its parent is none
  local text; text=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  set -- ${text##*) }
  [ "$1" != Z ] && echo "${20}"
}

record() { echo "$2 $(start_time "$2")" >"$state/pids/$1"; }      # record NAME PID

recorded() {  # the pid of NAME, if that process still lives
  local pid started
  read -r pid started 2>/dev/null <"$state/pids/$1" || return 1
  [ -n "$started" ] && [ "$(start_time "$pid")" = "$started" ] && echo "$pid"
}

start() {  # start NAME COMMAND...
  local name=$1; shift
  setsid "$@" >>"$state/logs/$name.log" 2>&1 </dev/null 9>&- &
  record "$name" $!
}

end() {  # end SIGNAL NAME...: returns when they are gone
  local signal=$1 name pid; shift
  for name in "$@"; do
    if pid=$(recorded "$name"); then kill "-$signal" "$pid" 2>/dev/null || true; fi
  done
  for name in "$@"; do
    wait_until 20 gone "$name" || { pid=$(recorded "$name") && kill -KILL "$pid"; wait_until 20 gone "$name"; } || true
    rm -f "$state/pids/$name"
  done
}

gone() { ! recorded "$1" >/dev/null; }

wait_until() {  # wait_until SECONDS COMMAND...
  local end=$((SECONDS + $1)); shift
  until "$@"; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.1
  done
}

tail_of() { tail -n 20 "$state/logs/$1.log" >&2 2>/dev/null || true; }
