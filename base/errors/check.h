// CHECK: for our own bugs. Prints the condition, the place and a sentence, then aborts; active in
// every build. Errors from outside are an absl::Status, never a CHECK.
//   CHECK(count > 0) << "micro-batch count was validated by the planner";
#ifndef STAGECOACH_BASE_ERRORS_CHECK_H_
#define STAGECOACH_BASE_ERRORS_CHECK_H_

#include <sstream>

namespace stagecoach::internal {

class CheckFailure {
 public:
  CheckFailure(const char* condition, const char* file, int line);
  [[noreturn]] ~CheckFailure();
  std::ostream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

struct Voidify {
  void operator&(std::ostream&) const {}
};

}  // namespace stagecoach::internal

#undef CHECK
#define CHECK(condition)                            \
  (condition) ? static_cast<void>(0)                \
              : ::stagecoach::internal::Voidify() & \
                    ::stagecoach::internal::CheckFailure(#condition, __FILE__, __LINE__).stream()
#define CHECK_EQ(a, b) CHECK((a) == (b)) << (a) << " vs " << (b) << " "
#define CHECK_NE(a, b) CHECK((a) != (b)) << (a) << " vs " << (b) << " "
#define CHECK_LT(a, b) CHECK((a) < (b)) << (a) << " vs " << (b) << " "
#define CHECK_LE(a, b) CHECK((a) <= (b)) << (a) << " vs " << (b) << " "
#define CHECK_GT(a, b) CHECK((a) > (b)) << (a) << " vs " << (b) << " "
#define CHECK_GE(a, b) CHECK((a) >= (b)) << (a) << " vs " << (b) << " "
#define CHECK_OK(expression)                                        \
  do {                                                              \
    const auto& stagecoach_check_status = (expression);             \
    CHECK(stagecoach_check_status.ok()) << stagecoach_check_status; \
  } while (false)

#endif  // STAGECOACH_BASE_ERRORS_CHECK_H_
