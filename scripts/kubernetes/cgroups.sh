# One control group per node, with its daemons and its pods below it: what a node started is found there, whatever became of its parent.

cgroup_of() { echo "benchyard-kubernetes-$number-$1"; }            # cgroup_of NODE

unified() { [ -f /sys/fs/cgroup/cgroup.controllers ]; }

hierarchies() {
  if unified; then echo /sys/fs/cgroup; return; fi
  awk '$3=="cgroup"{print $2}' /proc/mounts | sort -u
}

main_hierarchy() { if unified; then echo /sys/fs/cgroup; else echo /sys/fs/cgroup/freezer; fi; }

make_cgroup() {
  local hierarchy group file
  for hierarchy in $(hierarchies); do
    group=$hierarchy/$(cgroup_of "$1"); mkdir -p "$group/daemons"
    for file in cpuset.cpus cpuset.mems; do                        # of version 1: a new group may use no processor until it is told
      if ! unified && [ -f "$group/$file" ]; then cat "$hierarchy/$file" >"$group/$file"; cat "$hierarchy/$file" >"$group/daemons/$file"; fi
    done
  done
  if unified; then
    sed 's/[^ ]*/+&/g' /sys/fs/cgroup/cgroup.controllers >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null || true
  fi
}

pids_in_cgroup() {
  local group; group=$(main_hierarchy)/$(cgroup_of "$1")
  [ ! -d "$group" ] || find "$group" -name cgroup.procs -exec cat {} + 2>/dev/null || true
}

empty_cgroup() { [ -z "$(pids_in_cgroup "$1")" ]; }

kill_cgroup() {  # as when the power fails: everything at once, frozen first so that nothing sees its neighbour end
  local group pids; group=$(main_hierarchy)/$(cgroup_of "$1")
  [ -d "$group" ] || return 0
  echo FROZEN >"$group/freezer.state" 2>/dev/null || echo 1 >"$group/cgroup.freeze" 2>/dev/null || true
  kill_all_in "$1"
  echo THAWED >"$group/freezer.state" 2>/dev/null || echo 0 >"$group/cgroup.freeze" 2>/dev/null || true
  wait_until 30 killed_all_in "$1"
}

kill_all_in() { local pids; pids=$(pids_in_cgroup "$1"); [ -z "$pids" ] || kill -KILL $pids 2>/dev/null || true; }

killed_all_in() { kill_all_in "$1"; empty_cgroup "$1"; }

remove_cgroup() { wait_until 20 removed_cgroup "$1"; }

removed_cgroup() {
  local hierarchy group left=0
  # Where version 2 is mounted beside version 1, runc makes the groups of pods there too.
  for hierarchy in $(hierarchies) $(awk '$3=="cgroup2"{print $2}' /proc/mounts); do
    group=$hierarchy/$(cgroup_of "$1")
    if [ -d "$group" ]; then find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true; fi
    [ ! -d "$group" ] || left=1
  done
  [ $left = 0 ]
}
