#!/usr/bin/env bash
# Makes a private certificate authority and one certificate per service, for mutual TLS.
#
#   deploy/certs/make-certs.sh [-d DAYS] [-u UID] FOLDER [ROLE:]NAME[=SAN,SAN...]...
#
# ROLE, what its holder may do (docs/operations.md, "Roles"): coordinator, stage, user or operator. Without it the
# names coordinator, user, operator and client (an operator) say it, and every other NAME is a stage's. It stands in the
# certificate as URI spiffe://stagecoach/ROLE/NAME. A stage registers under NAME, or under NAME-0, NAME-1, ...; without a
# --name it is HOST-PORT, for which NAME is the host's name.
#
# FOLDER/ca.pem, FOLDER/ca.key            the authority; kept when they exist, so a stage can be added later
# FOLDER/NAME/{ca.pem,tls.crt,tls.key}    what one service gets to see, as flags, secret or volume
#
# A SAN is a DNS name, an IP address, or a wildcard such as *.stage.stagecoach.svc. NAME itself, localhost and
# 127.0.0.1 are always among them: neighbours dial NAME, health checks dial loopback.
# -u: the user who may read them, 65532 for the containers; needs root.
# The authority's key signs every peer of the cluster: keep it off the machines that run it.
set -euo pipefail

days=825
user=""
while getopts d:u: option; do
  case $option in
    d) days=$OPTARG ;;
    u) user=$OPTARG ;;
    *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
if [ $# -lt 2 ]; then
  sed -n '2,17s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
out=$1
shift
umask 077
mkdir -p "$out"

if [ ! -s "$out/ca.key" ]; then
  openssl ecparam -name prime256v1 -genkey -noout -out "$out/ca.key"
  openssl req -x509 -new -key "$out/ca.key" -sha256 -days 3650 -subj "/O=Stagecoach/CN=Stagecoach cluster authority" \
    -addext "basicConstraints=critical,CA:TRUE,pathlen:0" -addext "keyUsage=critical,keyCertSign,cRLSign" \
    -out "$out/ca.pem"
fi

# The role of an entry that does not say it.
role_of() {
  case $1 in
    coordinator | user | operator) printf '%s' "$1" ;;
    client) printf operator ;;
    *) printf stage ;;
  esac
}

# "DNS:coordinator,DNS:localhost,IP:127.0.0.1" for the given names.
alternative_names() {
  local list="" name kind
  for name in "$@"; do
    kind=DNS
    [[ $name =~ ^[0-9.]+$|: ]] && kind=IP
    list+="${list:+,}$kind:$name"
  done
  printf '%s' "$list"
}

# All of them are looked at before any is made.
for entry in "$@"; do
  name=${entry%%=*}
  role=${name%%:*}
  [ "$role" = "$name" ] && role=$(role_of "$name")
  name=${name#*:}
  if [[ ! $role =~ ^(coordinator|stage|user|operator)$ ]]; then
    echo "$entry: $role is no role; want coordinator, stage, user or operator before the colon" >&2
    exit 2
  fi
  if [[ ! $name =~ ^[A-Za-z0-9._-]+$ || $name =~ ^\.{1,2}$ ]]; then
    echo "$entry: \"$name\" is no name; want letters, digits, '.', '-' and '_'" >&2
    exit 2
  fi
done

for entry in "$@"; do
  name=${entry%%=*}
  role=${name%%:*}
  [ "$role" = "$name" ] && role=$(role_of "$name")
  name=${name#*:}
  extra=()
  [[ $entry == *=* ]] && IFS=, read -ra extra <<<"${entry#*=}"
  folder=$out/$name
  mkdir -p "$folder"
  san=$(alternative_names "$name" localhost 127.0.0.1 ${extra[@]+"${extra[@]}"}),URI:spiffe://stagecoach/$role/$name
  # A server's certificate serves in both directions: it is also a client of its neighbours. People's are no server's, or
  # whoever has one could stand in for the coordinator and be told tokens.
  usage=serverAuth,clientAuth
  case $role in user | operator) usage=clientAuth ;; esac
  printf '%s\n' "basicConstraints=critical,CA:FALSE" "keyUsage=critical,digitalSignature" \
    "extendedKeyUsage=$usage" "subjectAltName=$san" >"$folder/extensions"
  openssl ecparam -name prime256v1 -genkey -noout -out "$folder/tls.key"
  openssl req -new -key "$folder/tls.key" -subj "/O=Stagecoach/CN=$name" |
    openssl x509 -req -CA "$out/ca.pem" -CAkey "$out/ca.key" -sha256 -days "$days" \
      -set_serial "0x$(openssl rand -hex 16)" -extfile "$folder/extensions" -out "$folder/tls.crt" 2>/dev/null
  rm "$folder/extensions"
  cp "$out/ca.pem" "$folder/ca.pem"
  # Who may read the key is said once, by the owner; the folders above may be looked through.
  if [ -n "$user" ]; then chown -R "$user" "$folder"; fi
  echo "$folder: role $role, $san, $days days"
done
chmod 0755 "$out"
chmod 0644 "$out/ca.pem"
