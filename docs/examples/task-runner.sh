#!/bin/sh
# A task runner in 40 lines of sh and curl: takes command benchmarks of a provider, runs them on this machine, reports times.
#   BENCHYARD_URL=https://bench.example BENCHYARD_TOKEN=by_... PROVIDER=lab INSTANCE_TYPE=standard-1 sh task-runner.sh
set -eu
: "${BENCHYARD_URL:?where the service is}" "${BENCHYARD_TOKEN:?a token of scope agent}" "${PROVIDER:=lab}" "${INSTANCE_TYPE:=standard-1}"
work=$(mktemp -d); beat=''
trap '[ -z "$beat" ] || kill "$beat" 2>/dev/null || :; rm -rf "$work"' EXIT

post() { curl -fsS -H "Authorization: Bearer $BENCHYARD_TOKEN" -H 'Content-Type: application/json' -d "$2" "$BENCHYARD_URL/$1"; }
field() { sed -n 's/.*"'"$1"'":"\{0,1\}\([^",}]*\).*/\1/p' "$work/task"; }  # with jq at hand: jq -r ".$1"
about() { printf '"task_id":"%s","lease":"%s"' "$id" "$lease"; }
heartbeats() {  # until the service says cancel, or does not know the task any more
  while sleep "$(field heartbeat_s)"; do
    post heartbeat "{$(about)}" >"$work/beat" || break
    ! grep -q '"status":"cancel"' "$work/beat" || break
  done
  touch "$work/stop"
}

who="\"provider\":\"$PROVIDER\",\"instance_type\":\"$INSTANCE_TYPE\",\"runner\":\"$(uname -n | tr -cd 'A-Za-z0-9')\""
while post claim "{$who}" >"$work/task" || exit 1; do
  [ "$(field status)" = task ] || { echo "no task is left"; break; }
  id=$(field task_id) lease=$(field lease) results='' n=0; : >"$work/output"; rm -f "$work/stop"
  curl -fsS "$(field script_url)" >"$work/command.sh"
  heartbeats >/dev/null 2>&1 & beat=$!
  for n in $(sed -n 's/.*"todo":\[\([0-9,]*\)\].*/\1/p' "$work/task" | tr , ' '); do
    [ ! -e "$work/stop" ] || break
    echo "$id: repeat $n of $(field repeats)"
    start=$(date +%s.%N); code=0
    timeout "$(field timeout_s)" sh "$work/command.sh" >>"$work/output" 2>&1 </dev/null || code=$?
    wall=$(echo "$start $(date +%s.%N)" | awk '{printf "%.6f", $2 - $1}')
    late=false; [ "$code" != 124 ] || late=true
    results="$results${results:+,}{\"repeat\":$n,\"exit_code\":$code,\"wall_s\":$wall,\"timed_out\":$late}"
  done
  kill "$beat" 2>/dev/null || :; beat=''
  curl -fsS -T "$work/output" "$(field output.txt)" || :
  if [ -e "$work/stop" ]; then post fail "{$(about),\"message\":\"stopped on request\"}" || :
  else post complete "{$(about),\"results\":[$results]}" || post fail "{$(about),\"message\":\"the results were refused\"}" || :
  fi; echo
done
