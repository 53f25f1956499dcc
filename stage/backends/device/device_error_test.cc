#include "stage/backends/device/device_error.h"

#include <memory>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stage/backends/device/testing/fake_device_api.h"

namespace stagecoach {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Refused(FakeDeviceApi& api, int ordinal, absl::StatusCode code) {
  const absl::Status status = FindDevice(api, ordinal).status();
  EXPECT_EQ(status.code(), code) << status;
  return std::string(status.message());
}

TEST(FindDevice, TellsAnOldDriverFromNoneAndFromNoCard) {
  FakeDeviceApi api;
  api.count_code = device_code::kInsufficientDriver;
  api.driver = 12040;
  EXPECT_THAT(Refused(api, 0, absl::StatusCode::kUnavailable),
              AllOf(HasSubstr("supports CUDA 12.4, this program needs CUDA 13.0"),
                    HasSubstr("update the NVIDIA driver")));
  api.driver = 0;
  EXPECT_THAT(Refused(api, 0, absl::StatusCode::kUnavailable), HasSubstr("no NVIDIA driver"));
  api.count_code = device_code::kNoDevice;
  EXPECT_THAT(Refused(api, 0, absl::StatusCode::kUnavailable), HasSubstr("no CUDA device"));
}

TEST(FindDevice, NamesTheCardsThatExist) {
  FakeDeviceApi api;
  EXPECT_THAT(Refused(api, 2, absl::StatusCode::kInvalidArgument),
              HasSubstr("there are 2 cards, cuda:0 to cuda:1"));
  api.cards = 1;
  EXPECT_THAT(Refused(api, 1, absl::StatusCode::kInvalidArgument),
              HasSubstr("there is one card, cuda:0"));
}

TEST(FindDevice, WantsACardThatThereIsCodeFor) {
  FakeDeviceApi api;
  api.capability = 75;
  EXPECT_THAT(Refused(api, 0, absl::StatusCode::kUnavailable),
              HasSubstr("compute capability 7.5, this program needs 8.0"));
  api.capability = 80;
  EXPECT_EQ(FindDevice(api, 1)->compute_capability, 80);
}

TEST(DeviceFault, KeepsTheFirstErrorAndItsOperation) {
  DeviceFault fault(std::make_shared<FakeDeviceApi>(), 3);
  fault.Note(0, "nothing");
  EXPECT_TRUE(fault.ok() && fault.status().ok());
  fault.Note(FakeDeviceApi::kIllegalAddress, "LayerNormForward");
  fault.Note(device_code::kOutOfMemory, "SquaredNorm");
  EXPECT_FALSE(fault.ok());
  EXPECT_EQ(fault.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(fault.status().message()),
              AllOf(HasSubstr("cuda:3, LayerNormForward: cudaErrorIllegalAddress"),
                    HasSubstr("restart the stage server"), Not(HasSubstr("SquaredNorm"))));
}

TEST(DeviceFault, ARefusalOfMemoryIsForgottenAndAFaultStays) {
  DeviceFault fault(std::make_shared<FakeDeviceApi>(), 3);
  fault.Note(device_code::kOutOfMemory, "SquaredNorm");
  fault.NoteStatus(absl::ResourceExhaustedError("7 bytes asked"), "AdamW");
  EXPECT_FALSE(fault.ok());
  EXPECT_TRUE(fault.lasting().ok()) << "the card is as good as before";
  EXPECT_EQ(fault.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(fault.status().message()), HasSubstr("cuda:3, SquaredNorm: "));
  fault.ForgetRefusal();
  EXPECT_TRUE(fault.ok() && fault.status().ok());
  fault.NoteStatus(absl::ResourceExhaustedError("7 bytes asked"), "AdamW");
  EXPECT_EQ(fault.status().message(), "device cuda:3, AdamW: 7 bytes asked");
  fault.Note(FakeDeviceApi::kIllegalAddress, "LayerNormForward");
  EXPECT_EQ(fault.status().code(), absl::StatusCode::kInternal) << "what is worse is told";
  fault.ForgetRefusal();
  EXPECT_FALSE(fault.ok());
  EXPECT_EQ(fault.lasting(), fault.status());
}

// What is only tried may fail; another thread's errors are errors all the same.
TEST(DeviceFault, WhatATrialMeetsIsNoFault) {
  DeviceFault fault(std::make_shared<FakeDeviceApi>(), 0);
  fault.BeginTrial();
  EXPECT_EQ(fault.EndTrial(), "");
  fault.BeginTrial();
  fault.Note(FakeDeviceApi::kIllegalAddress, "linear");
  fault.NoteStatus(absl::ResourceExhaustedError("no workspace"), "attention");
  EXPECT_TRUE(fault.ok());
  EXPECT_EQ(fault.EndTrial(), "linear: cudaErrorIllegalAddress: text of 700");
  EXPECT_TRUE(fault.status().ok());

  fault.BeginTrial();
  std::thread([&] { fault.Note(FakeDeviceApi::kIllegalAddress, "freeing memory"); }).join();
  EXPECT_EQ(fault.EndTrial(), "");
  EXPECT_THAT(std::string(fault.lasting().message()), HasSubstr("freeing memory"));
}

TEST(DeviceFault, IsAsEverBehindATrial) {
  DeviceFault fault(std::make_shared<FakeDeviceApi>(), 0);
  fault.BeginTrial();
  fault.Note(FakeDeviceApi::kIllegalAddress, "linear");
  fault.EndTrial();
  fault.Note(FakeDeviceApi::kIllegalAddress, "add");
  EXPECT_THAT(std::string(fault.status().message()), HasSubstr("add: cudaErrorIllegalAddress"));
}

}  // namespace
}  // namespace stagecoach
