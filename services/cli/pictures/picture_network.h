// PictureNetwork: a trained network on images. It turns a picture into the network's input as its
// job did with held-out pictures, in the evaluation's form.
// Ownership: owns the network.  Threads: one thread.
// Units and shapes: logits [classes] of a picture, or [height, width, classes].
// Errors:    Load: INVALID_ARGUMENT for a network with other outputs, with the command that would
//            use it. NOT_FOUND: the data's mean and deviation were measured, and are not beside the
//            weights. Of the weights: as trained_network.h. Run: RESOURCE_EXHAUSTED from the
//            allocator.
#ifndef STAGECOACH_SERVICES_CLI_PICTURES_PICTURE_NETWORK_H_
#define STAGECOACH_SERVICES_CLI_PICTURES_PICTURE_NETWORK_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/data_facts.h"
#include "plan/job/job_spec.h"
#include "services/cli/trained/trained_network.h"
#include "stage/data/picture_form.h"

namespace stagecoach {

// The kind of answer for a picture.
enum class PictureAnswer { kClass, kClassOfEachPixel };

class PictureNetwork {
 public:
  // INVALID_ARGUMENT with the reason, unless this job's network gives that answer for pictures.
  static absl::Status Check(const JobSpec& spec, PictureAnswer wanted);

  // spec, facts: the job and the facts of its data, both from beside the weights.
  static absl::StatusOr<std::unique_ptr<PictureNetwork>> Load(const std::string& weights_file,
                                                              const JobSpec& spec,
                                                              const DataFacts& facts,
                                                              PictureAnswer wanted,
                                                              std::unique_ptr<Backend> backend);

  const PictureForm& form() const { return form_; }
  int64_t classes() const { return trained_.network.classes(); }
  // Name of a class; empty: it has none.
  std::string ClassName(int64_t id) const;
  // Number of pictures in one Run that is quick and needs little memory.
  size_t batch() const;
  // Logits of pictures that have the form's size and channels.
  absl::StatusOr<std::vector<std::vector<float>>> Run(std::span<const Picture> pictures) const;

 private:
  PictureNetwork(TrainedNetwork trained, PictureForm form, std::vector<std::string> names);

  const TrainedNetwork trained_;
  const PictureForm form_;
  const PixelNumbers numbers_;
  const std::vector<std::string> names_;
};

struct ClassShare {
  int64_t id = 0;
  double probability = 0;
};
// The `most` likeliest classes of softmax(logits), the likeliest first; of equal ones the lower id.
std::vector<ClassShare> LikeliestClasses(std::span<const float> logits, int64_t most);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_PICTURES_PICTURE_NETWORK_H_
