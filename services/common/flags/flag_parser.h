// FlagParser: the command line of a program without sub-commands. Only one file includes CLI11:
// each such file costs ten seconds of compiling, for every program and benchmark.
// Ownership: borrows every target; they must live until Parse has returned.
// Threads:   one.
// Errors:    Parse prints what is wrong (the flag, the value, what would be right) and returns the
//            exit code.
#ifndef STAGECOACH_SERVICES_COMMON_FLAGS_FLAG_PARSER_H_
#define STAGECOACH_SERVICES_COMMON_FLAGS_FLAG_PARSER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stagecoach {

class FlagParser {
 public:
  explicit FlagParser(const std::string& description);  // also adds --help and --version
  ~FlagParser();

  // `environment`: the variable to read if the flag is missing; empty: none. --help shows a default
  // that is not empty.
  void Text(const std::string& flag, std::string* target, const std::string& help,
            const std::string& environment = "");
  // For a file or a folder: a given one must not be empty. An unset variable once turned a login
  // off.
  void Path(const std::string& flag, std::string* target, const std::string& help);
  void OneOf(const std::string& flag, std::string* target, const std::string& help,
             const std::vector<std::string>& choices);
  void Texts(const std::string& flag, std::vector<std::string>* target, const std::string& help);
  void Switch(const std::string& flag, bool* target, const std::string& help,
              const std::string& environment = "");
  // Values in [lowest, highest].
  void Number(const std::string& flag, int* target, const std::string& help, int lowest,
              int highest);
  void Number(const std::string& flag, int64_t* target, const std::string& help, int64_t lowest,
              int64_t highest);
  void Number(const std::string& flag, double* target, const std::string& help, double lowest,
              double highest, const std::string& environment = "");

  // nullopt: go on. Otherwise the exit code: 0 after --help and --version, else kRefusedExitCode.
  std::optional<int> Parse(int argc, const char* const* argv);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_FLAGS_FLAG_PARSER_H_
