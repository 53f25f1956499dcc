// stagecoach-oracle BACKEND FILE: records one back end's numbers for compare.py.
// stagecoach-oracle --backends: the back ends of this build, one a line.
// stagecoach-oracle tokens TOKENIZER: ids and texts of lines, for tokenizers_ids.py.
// stagecoach-oracle run --help: a step of any network. stagecoach-oracle runs: many, in one process.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/errors/status.h"
#include "tests/oracle/oracle.h"
#include "tests/oracle/oracle_run.h"

namespace stagecoach {
namespace {

struct NamedBackend {
  std::string name;
  std::unique_ptr<Backend> (*make)(const BackendOptions& options);
  bool bfloat16 = true;  // its operations take it
};

std::vector<NamedBackend> Backends() {
  std::vector<NamedBackend> backends = {{"reference", &MakeReferenceBackend}};
#ifdef STAGECOACH_ORACLE_CPU
  backends.push_back({"cpu", &MakeCpuBackend});
#endif
  return backends;
}

absl::Status Record(const std::string& name, const std::string& path) {
  for (const NamedBackend& candidate : Backends()) {
    if (candidate.name != name) continue;
    const std::unique_ptr<Backend> backend = candidate.make({.threads = 2});
    Recorder recorder;
    RETURN_IF_ERROR(RecordOperations(*backend, &recorder));
    RETURN_IF_ERROR(RecordAverages(*backend, &recorder));
    RETURN_IF_ERROR(RecordUpdates(*backend, &recorder));
    RETURN_IF_ERROR(RecordTraining(*backend, &recorder));
    if (candidate.bfloat16) RETURN_IF_ERROR(RecordBfloat16Training(*backend, &recorder));
    return recorder.Write(path);
  }
  return absl::InvalidArgumentError("no back end " + name + " in this build; see --backends");
}

int Main(const std::vector<std::string>& arguments) {
  if (arguments.size() == 1 && arguments[0] == "--backends") {
    for (const NamedBackend& backend : Backends()) std::printf("%s\n", backend.name.c_str());
    return 0;
  }
  if (arguments.size() != 2) {
    std::fprintf(stderr, "usage: stagecoach-oracle run ... | --backends | BACKEND FILE\n");
    return 2;
  }
  const absl::Status status = Record(arguments[0], arguments[1]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "stagecoach-oracle: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace stagecoach

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "tokens") return stagecoach::OracleTokens(argv[2]);
#ifdef STAGECOACH_ORACLE_RUN
  if (argc > 1 && std::string(argv[1]) == "run") return stagecoach::OracleRun(argc - 1, argv + 1);
  if (argc == 2 && std::string(argv[1]) == "runs") return stagecoach::OracleRuns();
#endif
  return stagecoach::Main(std::vector<std::string>(argv + 1, argv + argc));
}
