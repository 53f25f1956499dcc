// What a peer that writes its own frames gets from a gRPC server, behind TLS and without.
#include "services/common/http2/read_watch.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/errors/check.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/testing/temporary_folder.h"
#include "services/common/grpc/access/callers.h"
#include "services/common/grpc/grpc_channel.h"
#include "services/common/grpc/grpc_server.h"
#include "services/common/http2/frames_testing.h"
#include "services/common/observe/log.h"
#include "services/common/tls/certificates_testing.h"
#include "services/common/tls/tls_identity.h"

namespace stagecoach {
namespace {

// A connection to a server on loopback, with TLS where there are certificates.
class RawPeer {
 public:
  RawPeer(int port, const TlsFlags& tls) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience = {20, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_EQ(connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
    if (tls.use_ssl) BeginTls(tls);
  }
  ~RawPeer() {
    ssl_.reset();
    close(socket_);
  }

  void Send(const std::string& bytes) {
    if (ssl_ != nullptr) {
      SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
    } else {
      EXPECT_EQ(send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(bytes.size()));
    }
  }
  // Waits for it; false: it is open after 20 s. A reset is an end too.
  bool IsEnded() {
    char buffer[1024];
    while (true) {
      errno = 0;
      const ssize_t count = ssl_ != nullptr ? SSL_read(ssl_.get(), buffer, sizeof(buffer))
                                            : recv(socket_, buffer, sizeof(buffer), 0);
      if (count <= 0) return errno != EAGAIN;
    }
  }

 private:
  void BeginTls(const TlsFlags& tls) {
    const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()),
                                                               SSL_CTX_free);
    static const unsigned char kProtocols[] = "\x02h2";
    SSL_CTX_set_alpn_protos(context.get(), kProtocols, sizeof(kProtocols) - 1);
    if (!tls.server_cert.empty()) {
      CHECK_EQ(SSL_CTX_use_certificate_chain_file(context.get(), tls.server_cert.c_str()), 1);
      CHECK_EQ(SSL_CTX_use_PrivateKey_file(context.get(), tls.server_key.c_str(), SSL_FILETYPE_PEM),
               1);
    }
    ssl_.reset(SSL_new(context.get()));
    SSL_set_fd(ssl_.get(), socket_);
    CHECK_EQ(SSL_connect(ssl_.get()), 1);
  }

  const int socket_;
  std::unique_ptr<SSL, void (*)(SSL*)> ssl_{nullptr, SSL_free};
};

// With TLS, or not.
class ReadWatchTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);  // SSL_write to an ended connection
    GrpcServerOptions options;
    options.listen = "127.0.0.1:0";
    if (GetParam()) {
      options.tls = authority_.IssueRole("coordinator", "here");
      peer_ = authority_.IssueRole("user", "ann");
    }
    server_ =
        std::make_unique<GrpcServer>(options, std::vector<GrpcServer::NamedService>{}, nullptr);
    ASSERT_TRUE(server_->Start().ok());
    server_->SetServing(true);
    before_ = Faults();
  }

  // The counter's line of that reason, without those of tests before.
  bool Counted(const std::string& reason) {
    const std::string line = absl::StrCat("connections_ended_total{reason=\"", reason, "\"} ");
    const auto number = [&](const std::string& text) {
      const size_t at = text.find(line);
      CHECK(at != text.npos) << text;
      return std::stoi(text.substr(at + line.size()));
    };
    return number(Faults()) == number(before_) + 1;
  }
  static std::string Faults() {
    MetricWriter writer;
    WriteReadFaults(writer);
    return writer.Text();
  }
  bool Serves() {
    const auto channel = MakeControlChannel(absl::StrCat("127.0.0.1:", server_->port()),
                                            MakeChannelCredentials(peer_).value());
    return channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(20));
  }

  TestAuthority authority_;
  TlsFlags peer_;
  std::unique_ptr<GrpcServer> server_;
  std::string before_;
};

// A field of a header that is whole, so that gRPC has nothing against it.
const std::string kField("\0\1a\1b", 5);

// The story: six connections with endless CONTINUATION frames took 3 GB of the coordinator's in 8.5
// s.
TEST_P(ReadWatchTest, AHeaderBlockInMoreThanFiveFramesEndsTheConnection) {
  RawPeer peer(server_->port(), peer_);
  std::string bytes = Hello() + FrameOf(kHeadersFrame, 0, 1, kField);
  for (int i = 0; i < 5; ++i) bytes += FrameOf(kContinuationFrame, 0, 1, kField);
  peer.Send(bytes);
  EXPECT_TRUE(peer.IsEnded());
  EXPECT_TRUE(Counted("header_frames"));
  EXPECT_TRUE(Serves());
}

TEST_P(ReadWatchTest, ANumberWithoutAnEndInAHeaderBlockEndsTheConnection) {
  RawPeer peer(server_->port(), peer_);
  peer.Send(Hello() +
            FrameOf(kHeadersFrame, 0, 1, std::string("\0\x7f", 2) + std::string(100, '\x80')));
  EXPECT_TRUE(peer.IsEnded());
  EXPECT_TRUE(Counted("headers"));
  EXPECT_TRUE(Serves());
}

// The story: it ended the process.
TEST_P(ReadWatchTest, AHeaderThatEndsGrpcEndsTheConnection) {
  RawPeer peer(server_->port(), peer_);
  const auto field = [](const std::string& name, const std::string& value) {
    return std::string(1, '\0') + static_cast<char>(name.size()) + name +
           static_cast<char>(value.size()) + value;
  };
  peer.Send(Hello() +
            FrameOf(kHeadersFrame, kEndHeadersFlag, 1,
                    field(":method", "POST") + field(":scheme", "http") +
                        field(":path", "/grpc.health.v1.Health/Check") + field(":authority", "a") +
                        field("te", "trailers") + field("content-type", "application/grpc") +
                        field("grpclb_client_stats", "x")));
  EXPECT_TRUE(peer.IsEnded());
  EXPECT_TRUE(Counted("headers"));
  EXPECT_TRUE(Serves());
}

TEST_P(ReadWatchTest, AFloodOfResetsEndsTheConnection) {
  RawPeer peer(server_->port(), peer_);
  std::string bytes = Hello();
  for (uint32_t i = 0; i < 1100; ++i) {
    bytes += FrameOf(kHeadersFrame, kEndHeadersFlag, 2 * i + 1, kField);
    bytes += FrameOf(kResetFrame, 0, 2 * i + 1, std::string("\0\0\0\x08", 4));
  }
  peer.Send(bytes);
  EXPECT_TRUE(peer.IsEnded());
  EXPECT_TRUE(Counted("resets"));
  EXPECT_TRUE(Serves());
}

// What one process does once is looked at in a process of its own.
class ReadWatchProcessTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  // Exit codes: 0, it is watched; 2, it was before; 3, it is not.
  void MakeCredentials(bool of_server) {
    const TlsFlags tls = authority_.IssueRole("stage", "stage-0");
    if (ReadsAreWatched()) _exit(2);
    if (of_server) {
      CHECK_OK(TlsIdentity::Load(tls).status());
    } else {
      CHECK_OK(MakeChannelCredentials(tls).status());
    }
    _exit(ReadsAreWatched() ? 0 : 3);
  }

  // The log's line about it is the last thing that the process says.
  void EndAConnectionWithoutACertificate() {
    CHECK_OK(SetUpLogging("coordinator", "text", false));
    const std::string tokens = folder_.Write("tokens", "ann " + Sha256Hex("a token") + "\n");
    CHECK_EQ(chmod(tokens.c_str(), 0600), 0);
    const std::unique_ptr<Callers> callers = Callers::Open(tokens).value();
    GrpcServerOptions options;
    options.listen = "127.0.0.1:0";
    options.tls = authority_.IssueRole("coordinator", "here");
    options.callers = callers.get();
    GrpcServer server(options, {}, nullptr);
    CHECK_OK(server.Start());
    RawPeer peer(server.port(), {.use_ssl = true});
    peer.Send("GET / HTTP/1.1\r\n\r\n");
    CHECK(peer.IsEnded());
    for (const LogEntry& line : ProcessLogRing()->Read(0, "", 0, 0).lines) {
      std::fprintf(stderr, "%s\n", line.message.c_str());
    }
    _exit(0);
  }

  TemporaryFolder folder_;
  TestAuthority authority_;
};

// The story: it began with the first server, and a stage has credentials, by which it may dial,
// before that.
TEST_F(ReadWatchProcessTest, NobodyHasCredentialsForTlsBeforeReadsAreWatched) {
  EXPECT_EXIT(MakeCredentials(true), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(MakeCredentials(false), ::testing::ExitedWithCode(0), "");
}

// The story: the line had no name at all of a stranger who floods a coordinator that takes tokens.
TEST_F(ReadWatchProcessTest, AnEndedConnectionWithoutACertificateIsLoggedWithItsAddress) {
  EXPECT_EXIT(EndAConnectionWithoutACertificate(), ::testing::ExitedWithCode(0),
              "a peer without a certificate at 127.0.0.1: it did not begin with HTTP/2");
}

INSTANTIATE_TEST_SUITE_P(Both, ReadWatchTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "BehindTls" : "WithoutTls"; });

}  // namespace
}  // namespace stagecoach
