// DataFacts: facts that a source finds in its data and that a job does not say. Users of the
// trained weights need them: a picture must become the same numbers as in training, and a class has
// a name. Stages that read data report the facts with every load. They go into the manifest of each
// checkpoint, and from there beside exported weights.
// Threads: a plain value.
#ifndef STAGECOACH_BASE_FILES_DATA_FACTS_H_
#define STAGECOACH_BASE_FILES_DATA_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace stagecoach {

struct DataFacts {
  std::vector<std::string> classes;  // names of classes, in the order of their numbers; empty: none
  std::vector<double> mean, deviation;  // measured, one a channel; empty: not measured
  bool empty() const { return classes.empty() && mean.empty() && deviation.empty(); }
  friend bool operator==(const DataFacts&, const DataFacts&) = default;
};

// If names have more bytes together, they are left out: messages and manifests carry them.
inline constexpr size_t kMostClassNameBytes = size_t{1} << 20;

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_FILES_DATA_FACTS_H_
