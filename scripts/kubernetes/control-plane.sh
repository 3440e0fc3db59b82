# etcd, API server, controllers and scheduler: processes of the host. All but the API server listen on a loopback address.

loopback=127.99.$number.1
service_range=10.$((110 + number)).0.0/16
service_address=10.$((110 + number)).0.1
api_port=16443

start_etcd() {
  start etcd etcd --data-dir "$state/etcd" --unsafe-no-fsync --log-level error \
    --listen-client-urls "http://$loopback:12379" --advertise-client-urls "http://$loopback:12379" \
    --listen-peer-urls "http://$loopback:12380" --initial-advertise-peer-urls "http://$loopback:12380" \
    --initial-cluster "default=http://$loopback:12380"
}

start_api() {
  if recorded apiserver >/dev/null; then say "the API server already runs"; return; fi
  start apiserver kube-apiserver --etcd-servers="http://$loopback:12379" --bind-address="$host_address" --advertise-address="$host_address" \
    --secure-port=$api_port --client-ca-file="$pki/ca.crt" --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" \
    --service-account-key-file="$pki/accounts.pub" --service-account-signing-key-file="$pki/accounts.key" \
    --service-account-issuer=https://kubernetes.default.svc --service-cluster-ip-range="$service_range" \
    --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --allow-privileged --event-ttl=10m \
    --kubelet-client-certificate="$pki/apiserver-to-kubelet.crt" --kubelet-client-key="$pki/apiserver-to-kubelet.key" \
    --kubelet-certificate-authority="$pki/ca.crt" --kubelet-preferred-address-types=InternalIP --cert-dir="$state/apiserver"
  wait_until 90 api_ready || { tail_of apiserver; die "the API server did not answer within 90 s (log: $state/logs/apiserver.log)"; }
}

api_ready() { admin get --raw /readyz >/dev/null 2>&1; }

stop_api() { end KILL apiserver; say "the API server is stopped; nodes and their pods live on"; }

start_controllers() {
  start controller-manager kube-controller-manager --kubeconfig="$pki/controller-manager.kubeconfig" --leader-elect=false \
    --authentication-kubeconfig="$pki/controller-manager.kubeconfig" --authorization-kubeconfig="$pki/controller-manager.kubeconfig" \
    --service-account-private-key-file="$pki/accounts.key" --root-ca-file="$pki/ca.crt" --use-service-account-credentials \
    --bind-address="$loopback" --secure-port=20257 --port=0 --cert-dir="$state/controller-manager"
  start scheduler kube-scheduler --kubeconfig="$pki/scheduler.kubeconfig" --leader-elect=false --bind-address="$loopback" --secure-port=20259 --port=0 \
    --authentication-kubeconfig="$pki/scheduler.kubeconfig" --authorization-kubeconfig="$pki/scheduler.kubeconfig" --cert-dir="$state/scheduler"
}

stop_control_plane() { end KILL scheduler controller-manager apiserver etcd; }
