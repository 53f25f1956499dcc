// Links behind mutual TLS: a stage takes the one of the stage that its job has in front of it, and
// no other's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/grpc/access/peer_identity.h"
#include "services/common/grpc/grpc_channel.h"
#include "services/common/tls/certificates_testing.h"
#include "services/common/tls/tls_identity.h"
#include "stage/link/grpc/grpc_link_testing.h"
#include "stage/link/grpc/waiting_streams.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class StageNeighbourTest : public GrpcLinkTest {
 protected:
  ~StageNeighbourTest() override {
    false_.clear();
    up_.reset();
    down_.reset();
    server_.reset();  // before the identity that it is served by
  }

  void SetUp() override {
    identity_ = TlsIdentity::Load(authority_.IssueRole("stage", "stage-1")).value();
    options_.may_be = CheckMayBeStage;
    server_ = std::make_unique<LinkServer>(options_, identity_->MakeServerCredentials());
  }

  // As a stage with such a certificate.
  std::unique_ptr<Link> DialAs(const std::string& role, const std::string& name) {
    options_.credentials = MakeChannelCredentials(authority_.IssueRole(role, name)).value();
    diallers_.push_back(std::make_unique<GrpcLinkConnector>(options_));
    return DialAgain();
  }
  std::unique_ptr<Link> DialAgain() {  // as the same one
    std::unique_ptr<Link> link =
        diallers_.back()->Dial(server_->address(), boundary_, *allocator_, kAnyMessageBytes);
    link->SetReadyCallback(bell_.Rope());
    return link;
  }
  void Accept(const std::string& upstream_name) {
    down_ = server_->connector.Accept(boundary_, upstream_name, *allocator_, kAnyMessageBytes);
    Hear();
  }
  void ExpectRefused(Link& link) {
    const absl::Status closed = WaitClosed(link);
    EXPECT_TRUE(absl::IsUnavailable(closed)) << "never the job's fault: " << closed;
    EXPECT_THAT(std::string(closed.message()),
                AllOf(HasSubstr("cells 0 -> 1"),
                      HasSubstr("certificate is that of stage stage-7, which may be")));
  }
  void ExpectServed() {
    Hear();
    ASSERT_TRUE(up_->TrySend(Message(MessageKind::kActivation, 0, 100)));
    const std::optional<TensorMessage> message = Receive(*down_);
    ASSERT_TRUE(message.has_value()) << down_->status() << up_->status();
    EXPECT_TRUE(Holds(*message, 100));
  }

  TestAuthority authority_;
  std::unique_ptr<TlsIdentity> identity_;
  std::vector<std::unique_ptr<GrpcLinkConnector>> diallers_;
  std::vector<std::unique_ptr<Link>> false_;
};

// Whoever had any stage's certificate and knew job and term got the place of the neighbour, with
// what it liked to send.
TEST_F(StageNeighbourTest, AnotherStageIsRefusedAndTheNeighbourIsServed) {
  Accept("stage-0");
  false_.push_back(DialAs("stage", "stage-7"));
  ExpectRefused(*false_.back());
  EXPECT_TRUE(down_->status().ok()) << "the boundary still waits for its neighbour";
  up_ = DialAs("stage", "stage-0");
  ExpectServed();
}

// Who comes before the stage has loaded cannot be told from the neighbour yet: a forged hello kept
// the neighbour out.
TEST_F(StageNeighbourTest, OnesThatAreEarlyDoNotKeepTheNeighbourOut) {
  // One more than there are places for: once it is refused, all the others wait.
  false_.push_back(DialAs("stage", "stage-7"));
  while (false_.size() <= WaitingStreams::kEarly.of_peer) false_.push_back(DialAgain());
  const auto has_closed = [](const auto& link) { return !link->status().ok(); };
  bell_.WaitFor([&] { return std::any_of(false_.begin(), false_.end(), has_closed); });
  ASSERT_EQ(std::erase_if(false_, has_closed), 1u);
  up_ = DialAs("stage", "stage-0");
  Accept("stage-0");
  for (const auto& link : false_) ExpectRefused(*link);
  ExpectServed();
  false_.push_back(DialAs("stage", "stage-7"));
  EXPECT_FALSE(WaitClosed(*false_.back()).ok());
  EXPECT_TRUE(down_->status().ok()) << "nor is it disturbed later";
}

// On one machine a stage took the places of all.
TEST_F(StageNeighbourTest, AnotherOfTheSameHostHasPlacesOfItsOwn) {
  const auto closed = [this] {
    return std::count_if(false_.begin(), false_.end(),
                         [](const auto& link) { return !link->status().ok(); });
  };
  for (const char* const name : {"stage-7", "stage-0"}) {
    for (size_t i = 0; i <= WaitingStreams::kEarly.of_peer; ++i) {
      boundary_.job = absl::StrCat("never-of-", name, "-", i);
      false_.push_back(i == 0 ? DialAs("stage", name) : DialAgain());
    }
    const int one_each = name == std::string("stage-7") ? 1 : 2;
    bell_.WaitFor([&] { return closed() >= one_each; });
    EXPECT_EQ(closed(), one_each) << name;
  }
}

TEST_F(StageNeighbourTest, PodsOfOneCertificateAreServed) {
  Accept("stage-0");
  up_ = DialAs("stage", "stage");
  ExpectServed();
}

// A coordinator that does not say the neighbour's name, and certificates of before there were
// roles.
TEST_F(StageNeighbourTest, WhereNobodyCanTellAnyStageIsServed) {
  Accept("");
  up_ = DialAs("stage", "stage-7");
  ExpectServed();
  ++boundary_.generation;
  options_.credentials = MakeChannelCredentials(authority_.Issue("old", {})).value();
  diallers_.push_back(std::make_unique<GrpcLinkConnector>(options_));
  up_ = diallers_.back()->Dial(server_->address(), boundary_, *allocator_, kAnyMessageBytes);
  Accept("stage-0");
  ExpectServed();
}

}  // namespace
}  // namespace stagecoach
