#include "services/common/process/dial_address.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/utf8.h"

namespace stagecoach {
namespace {

constexpr int kDefaultPort = 8001;

bool HoldsControl(const std::string& text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return absl::ascii_iscntrl(c); });
}

bool IsGrpcForm(const std::string& address) {
  for (const char* scheme : {"dns:", "unix:", "unix-abstract:", "ipv4:", "ipv6:"}) {
    if (absl::StartsWith(address, scheme) && address.size() > std::string(scheme).size()) {
      // "dns:8001" is a host of that name with a port.
      int port = 0;
      return !absl::SimpleAtoi(address.substr(address.find(':') + 1), &port);
    }
  }
  return false;
}

// What is wrong; empty if nothing is.
std::string Problem(const std::string& address) {
  const std::string example = absl::StrCat("want host:port, like localhost:", kDefaultPort);
  if (address.empty()) return absl::StrCat("is empty; ", example);
  const size_t scheme = address.find("://");
  if (scheme != std::string::npos && !HoldsControl(address)) {
    const std::string rest = address.substr(scheme + 3);
    const std::string host = rest.substr(0, rest.find_first_of(":/"));
    return absl::StrCat("a gRPC address has no ", address.substr(0, scheme + 3), "; want ",
                        host.empty() ? "host" : host, ":", kDefaultPort,
                        " (the gRPC port as --listen says it; the page has another)");
  }
  if (HoldsControl(address) || std::any_of(address.begin(), address.end(), [](unsigned char c) {
        return absl::ascii_isspace(c);
      })) {
    return absl::StrCat("holds a blank or a control character; ", example);
  }
  const bool bracketed = address[0] == '[';
  if (!bracketed && std::count(address.begin(), address.end(), ':') > 1) {
    return "an IPv6 address stands in brackets, like [::1]:8001";
  }
  const size_t host_end = bracketed ? address.find(']') : address.find(':');
  if (bracketed && host_end == std::string::npos) return "the bracket is not closed";
  const size_t colon = bracketed ? host_end + 1 : host_end;
  if (colon >= address.size()) {
    return absl::StrCat("no port; want ", address, ":", kDefaultPort,
                        " or what the server was told by --listen");
  }
  const std::string port_text = address.substr(colon + 1);
  int port = 0;
  if (address[colon] != ':' || !absl::SimpleAtoi(port_text, &port) || port < 1 || port > 65535) {
    return absl::StrCat("\"", address.substr(colon + (address[colon] == ':' ? 1 : 0)),
                        "\" is no port; want a number from 1 to 65535");
  }
  if (colon == 0) return absl::StrCat("no host before the port; ", example);
  return "";
}

// gRPC's resolvers, and what people write in front of a host.
constexpr const char* kSchemes[] = {"binder", "dns",  "fake", "google-c2p",    "http",  "https",
                                    "ipv4",   "ipv6", "unix", "unix-abstract", "vsock", "xds"};

std::string PeerProblem(const std::string& address) {
  if (std::string problem = Problem(address); !problem.empty()) return problem;
  const bool bracketed = address[0] == '[';
  const std::string host =
      bracketed ? address.substr(1, address.find(']') - 1) : address.substr(0, address.find(':'));
  const bool plain = std::all_of(host.begin(), host.end(), [bracketed](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_' ||
           (bracketed && (c == ':' || c == '%'));
  });
  if (!plain || host.empty())
    return "want host:port, with a host of letters, digits, '.', '-', '_'";
  if (host == "0.0.0.0" || host == "::") {
    return absl::StrCat(host,
                        " is every address of a machine, and nobody can dial it; give the one by "
                        "which others reach this machine");
  }
  const bool scheme = std::any_of(std::begin(kSchemes), std::end(kSchemes), [&](const char* known) {
    return absl::EqualsIgnoreCase(host, known);
  });
  return scheme ? absl::StrCat(host, ": stands for a way to reach a host; want host:port") : "";
}

}  // namespace

absl::Status CheckDialAddress(const std::string& name, const std::string& address) {
  if (IsGrpcForm(address) && !HoldsControl(address)) return absl::OkStatus();
  const std::string problem = Problem(address);
  if (problem.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " ", ShownName(address), ": ", ShownName(problem)));
}

absl::Status CheckPeerAddress(const std::string& name, const std::string& address) {
  const std::string problem = PeerProblem(address);
  if (problem.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, "=", ShownName(address), ": ", ShownName(problem)));
}

}  // namespace stagecoach
