// PeftFolder: the adapters of a job in the form that the Python package peft loads beside the model
// that they were trained with.
// Threads: any.
// Errors:  INVALID_ARGUMENT: the network has no names of Hugging Face's, or an adapter spans several
//          of its modules or a part of one, with the remedy. As AdapterFile's and WriteNewFolder's.
// Source:  peft 0.15, LoraConfig and get_peft_model_state_dict.
#ifndef STAGECOACH_SERVICES_CLI_TRAINED_PEFT_FOLDER_H_
#define STAGECOACH_SERVICES_CLI_TRAINED_PEFT_FOLDER_H_

#include <string>

#include "absl/status/status.h"
#include "checkpoint/files/file_system.h"
#include "plan/job/job_spec.h"

namespace stagecoach {

// As of `export --names`, beside the tables of network/names.
inline constexpr char kPeftNames[] = "peft";

// job: with training.lora. target: a folder that is not there yet.
absl::Status WritePeftFolder(FileSystem& files, const JobSpec& job,
                             const std::string& adapters_file, const std::string& target);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_TRAINED_PEFT_FOLDER_H_
