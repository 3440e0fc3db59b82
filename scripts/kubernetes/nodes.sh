# A node: containerd, kubelet and kube-proxy of its own, in a network and a mount namespace of its own. Inside it, /run, /var/lib and
# /var/log are the node's: two kubelets on one file system would delete each other's pods, and nothing is left on the host's.

configure_node() {
  local node=$1 home=$state/$1
  mkdir -p "$home"/{cni,var-lib,var-log,sysctl}
  echo "nameserver 192.0.2.1" >"$home/resolv.conf"                  # pods that ask for the node's resolver get none
  cat >"$home/containerd.toml" <<CONFIG
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$cache/cni"
    conf_dir = "$home/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
CONFIG
  cat >"$home/cni/pods.conflist" <<CONFIG
{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false,
 "ipam": {"type": "host-local", "ranges": [[{"subnet": "$(pods_of "$node")"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
CONFIG
  cat >"$home/kubelet.yaml" <<CONFIG
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $(address_of "$node")
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $pki/$node.crt
tlsPrivateKeyFile: $pki/$node.key
cgroupDriver: cgroupfs
cgroupRoot: /$(cgroup_of "$node")
enforceNodeAllocatable: []
failSwapOn: false
featureGates: {SizeMemoryBackedVolumes: true}
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
oomScoreAdj: 0
readOnlyPort: 0
healthzPort: 0
resolvConf: $home/resolv.conf
volumePluginDir: /var/lib/kubelet/volume-plugins
CONFIG
  cat >"$home/proxy.yaml" <<CONFIG
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clientConnection: {kubeconfig: $pki/proxy.kubeconfig}
hostnameOverride: $node
clusterCIDR: 10.$((240 + number)).0.0/16
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
conntrack: {maxPerCore: 0, min: 0}
CONFIG
}

start_node() {  # leaves containerd, kubelet and kube-proxy running inside
  local node=$1 pid
  pid=$(recorded "$node-network") || die "$node has no network: run up again"
  make_cgroup "$node"
  # Everything that the node starts belongs to its control group, because its first process does.
  nsenter --net="/proc/$pid/ns/net" unshare --mount --propagation private \
    "$parts/inside-node" "$state" "$node" "$(main_hierarchy)/$(cgroup_of "$node")/daemons" "$(address_of "$node")" \
    9>&- </dev/null >>"$state/logs/$node.log" 2>&1 || { tail_of "$node"; die "$node did not start (log: $state/logs/$node.log)"; }
  for pid in "$state/$node"/*.pid; do record "$node-$(basename "$pid" .pid)" "$(cat "$pid")"; done
}

inside_node() { local pid; pid=$(recorded "$1-containerd") || die "$1 does not run"; shift; nsenter --target "$pid" --mount --net "$@"; }

load_archive() {  # load_archive NODE FILE: the archive is in a folder that the node sees, too
  inside_node "$1" ctr --namespace k8s.io images import "$2" >>"$state/logs/$1.log" 2>&1 || { tail_of "$1"; die "$1 could not take the image in $2"; }
}

load_images() {  # load_images IMAGE...: from Docker on this host to both nodes
  local node archive=$state/images.$$.tar jobs=() job
  docker image inspect "$@" >/dev/null 2>&1 || die "Docker does not have the image $* (make images builds Benchyard's)"
  docker save --output "$archive" "$@"
  for node in $nodes; do load_archive "$node" "$archive" & jobs+=($!); done
  for job in "${jobs[@]}"; do wait "$job"; done
  rm -f "$archive"
}

node_ready() { [ "$(admin get node "$1" -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}' 2>/dev/null)" = True ]; }

kill_node() {
  kill_cgroup "$1" || die "not every process of $1 ended"
  rm -f "$state/pids/$1-"{containerd,kubelet,proxy}
  say "$1 is dead: no process of it is left"
}

revive_node() {
  if ! empty_cgroup "$1"; then say "$1 already runs"; return; fi
  remove_cgroup "$1" || true
  start_node "$1"
  say "$1 starts again"
}

remove_node() { kill_cgroup "$1" || true; remove_cgroup "$1" || say "the control group of $1 could not be removed"; }
