// Golden texts for tests: compares with a checked-in file; STAGECOACH_REWRITE=1 writes it instead.
#ifndef STAGECOACH_BASE_GOLDEN_TESTING_H_
#define STAGECOACH_BASE_GOLDEN_TESTING_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace stagecoach {

// `name` is relative to tests/golden.
inline void ExpectGolden(const std::string& name, const std::string& actual) {
  const std::filesystem::path path =
      std::filesystem::path(STAGECOACH_SOURCE_DIR) / "tests" / "golden" / name;
  const char* rewrite = std::getenv("STAGECOACH_REWRITE");
  if (rewrite != nullptr && std::string(rewrite) == "1") {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << actual;
    return;
  }
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file.good()) << path << " is missing; STAGECOACH_REWRITE=1 writes it";
  std::ostringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(actual, expected.str()) << path << "; STAGECOACH_REWRITE=1 rewrites it";
}

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_GOLDEN_TESTING_H_
