// Messages of networks with something changed at random: each is refused, or is a network that
// comes back as it was.
#include <string>
#include <utility>

#include "base/sanitized.h"
#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"
#include "network/network_testing.h"
#include "services/common/convert/network/convert_network.h"
#include "services/common/convert/network/network_changes_testing.h"

namespace stagecoach {
namespace {

// Of each network. Sanitized, a network takes twenty times as long.
constexpr uint64_t kSeeds = kSanitized ? 5 : 100;

class ChangedNetworks : public testing::Test {
 protected:
  void Expect(v1::Network proto) {
    SetItsDigest(&proto);
    const absl::StatusOr<Network> network = NetworkFromProto(proto);
    if (!network.ok()) {
      EXPECT_EQ(network.status().code(), absl::StatusCode::kInvalidArgument);
      ++refused_;
      return;
    }
    ++taken_;
    const absl::StatusOr<Network> again = NetworkFromProto(ToProto(*network));
    ASSERT_TRUE(again.ok()) << again.status();
    ExpectSameNetwork(*again, *network);
  }

  int refused_ = 0, taken_ = 0;
};

TEST_F(ChangedNetworks, OfOtherBytesAreRefusedOrComeBackAsTheyWere) {
  const google::protobuf::LogSilencer silencer;  // of texts that are none
  for (const v1::Network& message : NetworkMessages()) {
    const std::string bytes = message.SerializeAsString();
    for (uint64_t seed = 0; seed < SeedsOr(kSeeds); ++seed) {
      std::string changed = bytes;
      NetworkChanger(seed).ChangeBytes(&changed);
      v1::Network proto;
      if (proto.ParseFromString(changed)) Expect(std::move(proto));
    }
  }
  EXPECT_GT(refused_, static_cast<int>(kSeeds) / 3);
  EXPECT_GT(taken_, static_cast<int>(kSeeds) / 30);
}

TEST_F(ChangedNetworks, OfOtherFieldsAreRefusedOrComeBackAsTheyWere) {
  for (const v1::Network& message : NetworkMessages()) {
    for (uint64_t seed = 0; seed < SeedsOr(kSeeds); ++seed) {
      v1::Network proto = message;
      NetworkChanger changer(seed);
      changer.ChangeField(&proto);
      if (seed % 3 == 0) changer.ChangeField(&proto);
      Expect(std::move(proto));
    }
  }
  EXPECT_GT(refused_, static_cast<int>(kSeeds));
  EXPECT_GT(taken_, static_cast<int>(kSeeds) / 3);
}

}  // namespace
}  // namespace stagecoach
