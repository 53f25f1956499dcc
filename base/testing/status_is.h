// StatusIs: matches an absl::Status by its code and its message; for tests.
//   EXPECT_THAT(Open("none").status(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
#ifndef STAGECOACH_BASE_TESTING_STATUS_IS_H_
#define STAGECOACH_BASE_TESTING_STATUS_IS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "gmock/gmock.h"

namespace stagecoach {

// message: a matcher of a std::string, or a text that is the whole message.
template <typename Message>
testing::Matcher<const absl::Status&> StatusIs(absl::StatusCode code, Message message) {
  return testing::AllOf(
      testing::Property("code", &absl::Status::code, code),
      testing::ResultOf(
          "message", [](const absl::Status& status) { return std::string(status.message()); },
          std::move(message)));
}

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_TESTING_STATUS_IS_H_
