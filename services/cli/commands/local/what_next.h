// WhatNext: the last lines of `local` if the job succeeded.
// Threads: any.
#ifndef STAGECOACH_SERVICES_CLI_COMMANDS_LOCAL_WHAT_NEXT_H_
#define STAGECOACH_SERVICES_CLI_COMMANDS_LOCAL_WHAT_NEXT_H_

#include <string>

#include "stagecoach/v1/job.pb.h"

namespace stagecoach {

// How to see the page of an ended job, and how to use its weights if a command takes them.
std::string WhatNext(const v1::Job& job, const std::string& state_folder);

// The word for a shell: with quotes if it needs them.
std::string ShellWord(const std::string& word);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_COMMANDS_LOCAL_WHAT_NEXT_H_
