// Who a certificate says somebody is, and what the table lets them call.
#include "services/common/grpc/access/method_roles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/testing/status_is.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

absl::StatusOr<PeerIdentity> Parse(const std::vector<std::string>& uris) {
  return ParsePeerIdentity(uris);
}

TEST(PeerIdentity, IsTheOneUriOfOurTrustDomain) {
  for (const PeerRole role : kPeerRoles) {
    const std::string uri = absl::StrCat("spiffe://stagecoach/", PeerRoleName(role), "/a.B-3_c");
    EXPECT_EQ(Parse({uri}).value(), (PeerIdentity{role, "a.B-3_c"})) << uri;
  }
  EXPECT_EQ(Parse({"https://example.org/stage-0", "spiffe://other/user/eve",
                   "spiffe://stagecoach/stage/stage-0"})
                .value(),
            (PeerIdentity{PeerRole::kStage, "stage-0"}));
}

TEST(PeerIdentity, WithoutOneThereIsNoRole) {
  EXPECT_EQ(Parse({}).status().code(), absl::StatusCode::kNotFound);
  for (const char* uri :
       {"", "stage-0", "spiffe://other/operator/eve", "spiffe://stagecoach",
        "spiffe://stagecoach.evil/operator/eve", " spiffe://stagecoach/operator/eve",
        "x:spiffe://stagecoach/operator/eve"}) {
    EXPECT_EQ(Parse({uri}).status().code(), absl::StatusCode::kNotFound) << uri;
  }
}

// Nobody becomes what a lax reader would make of these; and none passes as "without a role", for
// which a server may be told to open everything.
TEST(PeerIdentity, WhatCannotBeReadIsRefusedAndShown) {
  const std::string nul("spiffe://stagecoach/operator/eve\0.example", 41);
  for (const std::string& uri :
       {std::string("spiffe://stagecoach/"), std::string("spiffe://stagecoach/operator"),
        std::string("spiffe://stagecoach/operator/"), std::string("spiffe://stagecoach//eve"),
        std::string("SPIFFE://STAGECOACH/operator/eve"),
        std::string("spiffe://stagecoach/root/eve"),
        std::string("spiffe://stagecoach/Operator/eve"),
        std::string("spiffe://stagecoach/operator/eve/more"),
        std::string("spiffe://stagecoach/operator/eve?as=user"),
        std::string("spiffe://stagecoach/operator/eve#x"),
        std::string("spiffe://stagecoach/stage/*"), std::string("spiffe://stagecoach/stage/.."),
        std::string("spiffe://stagecoach/stage/."), std::string("spiffe://stagecoach/stage/a%2Fb"),
        std::string("spiffe://stagecoach/stage/a b"),
        std::string("spiffe://stagecoach/stage/\xc3\xa4"), nul,
        absl::StrCat("spiffe://stagecoach/stage/", std::string(254, 'a'))}) {
    const absl::Status status = Parse({uri}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << uri;
    EXPECT_THAT(std::string(status.message()), HasSubstr("want spiffe://stagecoach/ROLE/NAME"));
    EXPECT_LT(status.message().size(), 1200u) << "a name may be long, a message not";
  }
}

TEST(PeerIdentity, TwoRolesAreNone) {
  EXPECT_THAT(Parse({"spiffe://stagecoach/user/eve", "spiffe://stagecoach/operator/eve"}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("/user/eve"), HasSubstr("/operator/eve"))));
  EXPECT_EQ(Parse({"spiffe://stagecoach/user/eve", "spiffe://stagecoach/user/eve"}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(PeerIdentity, AStageHasItsOwnNameAndItsPodsNumbers) {
  const PeerIdentity one{PeerRole::kStage, "stage-1"}, pods{PeerRole::kStage, "stage"};
  EXPECT_TRUE(MayBeStage(one, "stage-1"));
  for (const char* other :
       {"stage-0", "stage-10", "stage", "stage-1x", "xstage-1", "", "stage-1-"}) {
    EXPECT_FALSE(MayBeStage(one, other)) << other;
  }
  for (const char* pod : {"stage", "stage-0", "stage-127", "stage-1023", "stage-65535"}) {
    EXPECT_TRUE(MayBeStage(pods, pod)) << pod;
  }
  for (const char* other :
       {"stages-0", "stage0", "stage-", "stage-a", "stage-1-2", "other-stage-1", "stage-65536",
        "stage-00", "stage-01", "stage--1", "stage-+1", "stage-99999999999999999999"}) {
    EXPECT_FALSE(MayBeStage(pods, other)) << other;
    EXPECT_FALSE(CheckRegisters(pods, other, "10.0.0.1:65536").ok()) << other;
  }
  EXPECT_FALSE(MayBeStage({PeerRole::kOperator, "stage-1"}, "stage-1"));
}

TEST(PeerIdentity, ANumberThatNoPodHasIsThePortOfTheAddress) {
  const PeerIdentity box{PeerRole::kStage, "box"};
  for (const char* address : {"box:8101", "10.0.0.1:8101", "[::1]:8101"}) {
    EXPECT_TRUE(CheckRegisters(box, "box-8101", address).ok()) << address;
  }
  for (const char* address : {"box:8102", "box:18101", "8101:1", "box-8101", ""}) {
    EXPECT_THAT(std::string(CheckRegisters(box, "box-8101", address).message()),
                HasSubstr("box, box-0 to -1023 or, at an address with that port, box-PORT"))
        << address;
  }
  EXPECT_TRUE(CheckRegisters(box, "box", "a:1").ok());
  EXPECT_TRUE(CheckRegisters(box, "box-1023", "a:1").ok());
  EXPECT_FALSE(CheckRegisters(box, "box-1024", "a:1").ok());
  EXPECT_TRUE(CheckRegisters({PeerRole::kStage, "box-8101"}, "box-8101", "a:1").ok())
      << "its own name";
  EXPECT_THAT(std::string(CheckRegisters({PeerRole::kUser, "box"}, "box-8101", "a:8101").message()),
              HasSubstr("user box, which may be no stage"));
}

TEST(PeerIdentity, WhoeverIsDialedAsAStageShowsThatStagesCertificate) {
  const auto check = [](std::vector<std::string> uris, bool any = false) {
    return std::string(CheckIsStage(uris, "stage-1", any).message());
  };
  EXPECT_EQ(check({"spiffe://stagecoach/stage/stage-1"}), "");
  EXPECT_EQ(check({"spiffe://stagecoach/stage/stage"}), "") << "a pod's, which is shared";
  EXPECT_THAT(check({"spiffe://stagecoach/stage/stage-0"}), HasSubstr("the name stage-0"));
  EXPECT_THAT(check({"spiffe://stagecoach/operator/stage-1"}), HasSubstr("the role operator"));
  EXPECT_THAT(check({}), HasSubstr("not that of stage stage-1: it has no URI"));
  EXPECT_EQ(check({}, true), "");
  EXPECT_THAT(check({"spiffe://stagecoach/stage/stage-0"}, true), HasSubstr("the name stage-0"));
  EXPECT_THAT(check({"spiffe://stagecoach/queen/stage-1"}, true), HasSubstr("want spiffe"));
}

// "/stagecoach.v1.JobService/SubmitJob" of every service in proto/, whether this program has it
// linked or not.
std::set<std::string> PathsOfProto() {
  static const std::regex package_line("package ([a-z0-9_.]+);"),
      service_line("service ([A-Za-z0-9_]+) .*"), rpc_line(" *rpc +([A-Za-z0-9_]+) *\\(.*");
  std::set<std::string> paths;
  const std::string root = absl::StrCat(STAGECOACH_SOURCE_DIR, "/proto");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".proto") continue;
    std::ifstream file(entry.path());
    std::string line, package, service;
    std::smatch found;
    while (std::getline(file, line)) {
      if (std::regex_match(line, found, package_line)) package = found[1];
      if (std::regex_match(line, found, service_line)) service = found[1];
      if (std::regex_match(line, found, rpc_line)) {
        paths.insert(absl::StrCat("/", package, ".", service, "/", found[1].str()));
      }
    }
  }
  return paths;
}

TEST(MethodRoles, EveryMethodThatWeServeHasARowAndNoOther) {
  std::set<std::string> rows;
  for (const MethodRoles& row : AllMethodRoles()) {
    const std::string path = row.path();
    EXPECT_TRUE(rows.insert(path).second) << path << " twice";
    EXPECT_EQ(FindMethodRoles(path), &row);
    EXPECT_NE(row.any_certificate, row.roles != 0) << path << ": for some roles, or for everybody";
  }
  std::set<std::string> served = PathsOfProto();
  EXPECT_EQ(served.count("/stagecoach.v1.StageService/LoadCell"), 1u);
  // gRPC's own, whose description is not in proto/.
  served.insert("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
  served.insert("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo");
  EXPECT_EQ(rows, served) << "say in method_roles.cc who may call it";
}

TEST(MethodRoles, WhatHasNoRowIsNotThere) {
  for (const char* path :
       {"", "/", "stagecoach.v1.JobService/SubmitJob", "/stagecoach.v1.JobService",
        "/stagecoach.v1.JobService/", "/stagecoach.v1.JobService/SubmitJob/",
        "/stagecoach.v1.JobService/submitjob", "//SubmitJob", "/stagecoach.v1.JobService/Delete"}) {
    EXPECT_EQ(FindMethodRoles(path), nullptr) << path;
    const Caller caller{PeerIdentity{PeerRole::kOperator, "o"}, "o"};
    EXPECT_EQ(CheckCall(path, caller, true).code(), absl::StatusCode::kUnimplemented) << path;
  }
}

// The table as people read it in docs/operations.md.
TEST(MethodRoles, AreAsDocumented) {
  const auto callers = [](const char* path) {
    std::string text;
    for (const PeerRole role : kPeerRoles) {
      if (CheckCall(path, {PeerIdentity{role, "x"}, "x"}, false).ok()) {
        absl::StrAppend(&text, text.empty() ? "" : " ", PeerRoleName(role));
      }
    }
    return text;
  };
  for (const MethodRoles& row : AllMethodRoles()) {
    const std::string path = row.path();
    std::string want;
    if (row.service == "stagecoach.v1.StageService") want = "coordinator operator";
    if (row.service == "stagecoach.v1.LinkService") want = "stage";
    if (row.service == "stagecoach.v1.SnapshotService") want = "stage";
    if (row.service == "stagecoach.v1.JobService") want = "user operator";
    if (row.service == "stagecoach.v1.DataService") want = "user operator";
    if (row.service == "stagecoach.v1.FleetService") {
      want = row.method == "ListStages" ? "user operator" : "stage";
    }
    if (row.service == "stagecoach.v1.StoreService") {
      want = row.method == "RemoveObject" ? "stage" : "stage user operator";
    }
    if (row.service == "grpc.health.v1.Health") want = "coordinator stage user operator";
    if (row.method == "ServerReflectionInfo") want = "user operator";
    EXPECT_EQ(callers(path.c_str()), want) << path;
  }
}

TEST(MethodRoles, ARefusalSaysWhoCalledWhoMayAndWhatToDo) {
  const char* const submit = "/stagecoach.v1.JobService/SubmitJob";
  const absl::Status stage =
      CheckCall(submit, {PeerIdentity{PeerRole::kStage, "stage-0"}, "stage-0"}, false);
  EXPECT_THAT(stage, StatusIs(absl::StatusCode::kPermissionDenied,
                              AllOf(HasSubstr("SubmitJob of stagecoach.v1.JobService"),
                                    HasSubstr("user or operator"), HasSubstr("stage stage-0"),
                                    HasSubstr("stagecoach certs FOLDER user:NAME"))));
  EXPECT_THAT(
      CheckCall(submit, {Parse({}).status(), "old\x1b"}, false),
      StatusIs(absl::StatusCode::kPermissionDenied,
               AllOf(HasSubstr("CN old\\x1b"), HasSubstr("names no role"),
                     HasSubstr("stagecoach certs"), HasSubstr("--any-certificate-i-know"))));
  EXPECT_THAT(CheckCall(submit, {Parse({"spiffe://stagecoach/root/eve"}).status(), ""}, false),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("spiffe://stagecoach/root/eve"), Not(HasSubstr("i-know")))));
}

TEST(MethodRoles, TheFlagIsForCertificatesWithoutARoleOnly) {
  const char* const load = "/stagecoach.v1.StageService/LoadCell";
  EXPECT_TRUE(CheckCall(load, {Parse({}).status(), "old"}, true).ok());
  EXPECT_FALSE(CheckCall(load, {PeerIdentity{PeerRole::kUser, "ann"}, "ann"}, true).ok());
  EXPECT_FALSE(CheckCall(load, {Parse({"spiffe://stagecoach/operator/"}).status(), ""}, true).ok())
      << "somebody meant to give it a role";
  EXPECT_TRUE(CheckCall("/grpc.health.v1.Health/Check", {Parse({}).status(), ""}, false).ok());
}

}  // namespace
}  // namespace stagecoach
