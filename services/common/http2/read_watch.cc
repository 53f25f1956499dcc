#include "services/common/http2/read_watch.h"

#include <dlfcn.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/utf8.h"
#include "services/common/http2/frame_watch.h"
#include "services/common/observe/log_turn.h"

namespace stagecoach {
namespace {

using Fault = FrameWatch::Fault;

constexpr std::pair<Fault, const char*> kReasons[] = {{Fault::kPreface, "preface"},
                                                      {Fault::kLongHeaders, "header_bytes"},
                                                      {Fault::kManyFrames, "header_frames"},
                                                      {Fault::kHeaders, "headers"},
                                                      {Fault::kResets, "resets"},
                                                      {Fault::kGuesses, "guesses"}};

struct PlainConnection {
  ino_t inode = 0;
  bool reported = false;
  FrameWatch watch{FrameWatch::Side::kServer};
};

// Never destroyed: gRPC reads until the process has ended.
struct Shared {
  std::atomic<bool> started{false};
  std::atomic<uint64_t> faults[7] = {};  // by Fault
  LogTurn turn{kSecondsBetweenFaults};
  int ssl_index = -1;     // of a TLS connection's watch among its data
  int origin_index = -1;  // of its Origin
  std::mutex mutex;       // guards plain
  std::unordered_map<int, std::shared_ptr<PlainConnection>> plain;
};

Shared& TheShared() {
  static Shared& shared = *new Shared;
  return shared;
}

void Report(Fault fault, const std::string& who) {
  Shared& shared = TheShared();
  ++shared.faults[static_cast<int>(fault)];
  const std::optional<uint64_t> silent = shared.turn.Take();
  if (!silent.has_value()) return;
  spdlog::warn("ended a gRPC connection of {}{}: it {}", who,
               *silent > 0 ? absl::StrCat(", and ", *silent, " since the last such line") : "",
               FaultText(fault));
}

// What a server knows of a connection with TLS before it is read.
struct Origin {
  std::string from;  // "10.0.0.1"
  MayAuthorize may_authorize;
};

thread_local std::optional<Origin> arriving;

// Null: this process dialed.
const Origin* OriginOf(SSL* ssl) {
  return static_cast<const Origin*>(SSL_get_ex_data(ssl, TheShared().origin_index));
}

std::string PeerNameOf(SSL* ssl) {
  const Origin* const origin = OriginOf(ssl);
  const std::string at = origin != nullptr ? absl::StrCat(" at ", origin->from) : "";
  X509* const certificate = SSL_get0_peer_certificate(ssl);
  if (certificate == nullptr) return absl::StrCat("a peer without a certificate", at);
  char name[256] = "";
  X509_NAME_oneline(X509_get_subject_name(certificate), name, sizeof(name));
  return absl::StrCat("the certificate ", ShownName(name), at);
}

std::string PeerNameOf(int descriptor) {
  sockaddr_storage from{};
  socklen_t length = sizeof(from);
  char host[NI_MAXHOST] = "?";
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&from), &length) == 0) {
    getnameinfo(reinterpret_cast<const sockaddr*>(&from), length, host, sizeof(host), nullptr, 0,
                NI_NUMERICHOST);
  }
  return host;
}

ino_t InodeOf(int descriptor) {
  struct stat found {};
  return fstat(descriptor, &found) == 0 ? found.st_ino : 0;
}

void FreeWatch(void*, void* watch, CRYPTO_EX_DATA*, int, long, void*) {
  delete static_cast<FrameWatch*>(watch);
}

// OpenSSL calls it for every SSL that is made.
void NoteOrigin(void*, void*, CRYPTO_EX_DATA* data, int index, long, void*) {
  if (!arriving.has_value()) return;
  auto origin = std::make_unique<Origin>(*arriving);
  CHECK_EQ(CRYPTO_set_ex_data(data, index, origin.get()), 1) << "no memory for an address";
  origin.release();
}

void FreeOrigin(void*, void* origin, CRYPTO_EX_DATA*, int, long, void*) {
  delete static_cast<Origin*>(origin);
}

// gRPC refuses a peer that does not agree on HTTP/2 in the handshake; other clients of this process
// do not ask for it.
bool SpeaksHttp2(SSL* ssl) {
  const unsigned char* protocol = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl, &protocol, &size);
  return std::string_view(reinterpret_cast<const char*>(protocol), size) == "h2";
}

// Null: nobody asked for one, or it is not gRPC that reads.
FrameWatch* WatchOf(SSL* ssl) {
  Shared& shared = TheShared();
  if (!shared.started.load(std::memory_order_acquire)) return nullptr;
  if (void* const known = SSL_get_ex_data(ssl, shared.ssl_index)) {
    return static_cast<FrameWatch*>(known);
  }
  const bool server = SSL_is_server(ssl) != 0;
  if (!server && !SpeaksHttp2(ssl)) return nullptr;
  // Of one with a certificate no token counts.
  const Origin* const origin = OriginOf(ssl);
  const bool by_token = origin != nullptr && SSL_get0_peer_certificate(ssl) == nullptr;
  auto made =
      std::make_unique<FrameWatch>(server ? FrameWatch::Side::kServer : FrameWatch::Side::kClient,
                                   SystemClock::Get(), by_token ? origin->may_authorize : nullptr);
  CHECK_EQ(SSL_set_ex_data(ssl, shared.ssl_index, made.get()), 1) << "no memory for a watch";
  return made.release();
}

std::shared_ptr<PlainConnection> WatchOf(int descriptor) {
  Shared& shared = TheShared();
  if (!shared.started.load(std::memory_order_acquire)) return nullptr;
  std::lock_guard<std::mutex> lock(shared.mutex);
  const auto found = shared.plain.find(descriptor);
  return found == shared.plain.end() ? nullptr : found->second;
}

void ForgetPlain(int descriptor, const std::shared_ptr<PlainConnection>& connection) {
  Shared& shared = TheShared();
  std::lock_guard<std::mutex> lock(shared.mutex);
  const auto found = shared.plain.find(descriptor);
  if (found != shared.plain.end() && found->second == connection) shared.plain.erase(found);
}

// False: the connection ends. So it is said again and again: gRPC may read on behind bytes that it
// has.
bool Look(int descriptor, const msghdr& message, size_t count) {
  const std::shared_ptr<PlainConnection> connection = WatchOf(descriptor);
  if (connection == nullptr) return true;
  Fault fault = Fault::kNone;
  for (size_t i = 0; i < message.msg_iovlen && count > 0; ++i) {
    const size_t size = std::min(count, message.msg_iov[i].iov_len);
    fault = connection->watch.Take({static_cast<const char*>(message.msg_iov[i].iov_base), size});
    count -= size;
  }
  if (fault == Fault::kNone) return true;
  // The kernel gives numbers out again: this may be another socket, with bytes of another kind.
  if (InodeOf(descriptor) != connection->inode) {
    ForgetPlain(descriptor, connection);
    return true;
  }
  if (!std::exchange(connection->reported, true)) Report(fault, PeerNameOf(descriptor));
  return false;
}

}  // namespace

void StartReadWatch() {
  static std::once_flag once;
  std::call_once(once, [] {
    CHECK(dlsym(RTLD_DEFAULT, "SSL_read") == reinterpret_cast<void*>(&SSL_read) &&
          dlsym(RTLD_DEFAULT, "recvmsg") == reinterpret_cast<void*>(&recvmsg))
        << "gRPC does not read through this program's SSL_read and recvmsg (read_watch.h)";
    TheShared().ssl_index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, FreeWatch);
    TheShared().origin_index = SSL_get_ex_new_index(0, nullptr, NoteOrigin, nullptr, FreeOrigin);
    CHECK(TheShared().ssl_index >= 0 && TheShared().origin_index >= 0)
        << "OpenSSL has no place for a watch";
    TheShared().started.store(true, std::memory_order_release);
  });
}

bool ReadsAreWatched() { return TheShared().started.load(std::memory_order_acquire); }

Arrival::Arrival(int descriptor, MayAuthorize may_authorize) {
  CHECK(!arriving.has_value()) << "a thread hands over one at a time";
  arriving = Origin{PeerNameOf(descriptor), std::move(may_authorize)};
}

Arrival::~Arrival() { arriving.reset(); }

void WatchReads(int descriptor) {
  auto connection = std::make_shared<PlainConnection>();
  connection->inode = InodeOf(descriptor);
  std::lock_guard<std::mutex> lock(TheShared().mutex);
  TheShared().plain[descriptor] = std::move(connection);
}

void WriteReadFaults(MetricWriter& writer) {
  for (const auto& [fault, reason] : kReasons) {
    writer.Add(metric::kConnectionsEnded, {reason},
               static_cast<double>(TheShared().faults[static_cast<int>(fault)].load()));
  }
}

}  // namespace stagecoach

// SSL_read_ex is the same reading, under a name that nobody but us calls.
extern "C" int SSL_read(SSL* ssl, void* buffer, int size) {
  using stagecoach::FrameWatch;
  size_t count = 0;
  if (size < 0 || SSL_read_ex(ssl, buffer, static_cast<size_t>(size), &count) != 1) return -1;
  FrameWatch* const watch = stagecoach::WatchOf(ssl);
  if (watch == nullptr) return static_cast<int>(count);
  const FrameWatch::Fault fault = watch->Take({static_cast<const char*>(buffer), count});
  if (fault == FrameWatch::Fault::kNone) return static_cast<int>(count);
  stagecoach::Report(fault, stagecoach::PeerNameOf(ssl));
  ERR_raise(ERR_LIB_USER, ERR_R_PASSED_INVALID_ARGUMENT);  // what SSL_get_error goes by
  return -1;
}

extern "C" ssize_t recvmsg(int descriptor, msghdr* message, int flags) {
  using Function = ssize_t (*)(int, msghdr*, int);
  static const auto library = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "recvmsg"));
  const ssize_t count = library(descriptor, message, flags);
  if (count <= 0 || (flags & (MSG_ERRQUEUE | MSG_PEEK)) != 0) return count;
  if (stagecoach::Look(descriptor, *message, static_cast<size_t>(count))) return count;
  errno = ECONNRESET;
  return -1;
}
