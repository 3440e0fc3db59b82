# One authority, a certificate for each part of the cluster, and a kubeconfig for each part that calls the API server.

make_certificates() {
  mkdir -p "$pki"
  openssl ecparam -name prime256v1 -genkey -noout -out "$pki/ca.key"
  openssl req -x509 -new -key "$pki/ca.key" -subj /CN=benchyard-kubernetes -days 3650 -out "$pki/ca.crt"
  certificate apiserver /CN=kube-apiserver "IP:$host_address,IP:$service_address,DNS:kubernetes.default.svc,DNS:kubernetes"
  certificate admin /O=system:masters/CN=admin
  certificate apiserver-to-kubelet /O=system:masters/CN=apiserver
  certificate controller-manager /CN=system:kube-controller-manager
  certificate scheduler /CN=system:kube-scheduler
  certificate proxy /CN=system:kube-proxy
  local node
  for node in $nodes; do certificate "$node" "/O=system:nodes/CN=system:node:$node" "IP:$(address_of "$node"),DNS:$node"; done
  openssl ecparam -name prime256v1 -genkey -noout -out "$pki/accounts.key"
  openssl ec -in "$pki/accounts.key" -pubout -out "$pki/accounts.pub" 2>/dev/null
  for node in admin controller-manager scheduler proxy $nodes; do kubeconfig "$node"; done
  chmod 600 "$pki"/*.key "$pki"/*.kubeconfig
}

certificate() {  # certificate NAME SUBJECT [ALTERNATIVE-NAMES]
  openssl ecparam -name prime256v1 -genkey -noout -out "$pki/$1.key"
  printf 'extendedKeyUsage=serverAuth,clientAuth\n%s\n' "${3:+subjectAltName=$3}" >"$pki/extensions"
  openssl req -new -key "$pki/$1.key" -subj "$2" |
    openssl x509 -req -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -CAcreateserial -days 3650 -extfile "$pki/extensions" -out "$pki/$1.crt" 2>/dev/null
}

kubeconfig() {  # kubeconfig NAME
  cat >"$pki/$1.kubeconfig" <<CONFIG
apiVersion: v1
kind: Config
current-context: here
clusters: [{name: here, cluster: {server: "https://$host_address:$api_port", certificate-authority-data: $(base64 -w0 "$pki/ca.crt")}}]
users: [{name: $1, user: {client-certificate-data: $(base64 -w0 "$pki/$1.crt"), client-key-data: $(base64 -w0 "$pki/$1.key")}}]
contexts: [{name: here, context: {cluster: here, user: $1}}]
CONFIG
}
