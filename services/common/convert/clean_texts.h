// Cleans texts of a message from another process, before they are stored, counted, logged or shown.
// Threads: pure function.
#ifndef STAGECOACH_SERVICES_COMMON_CONVERT_CLEAN_TEXTS_H_
#define STAGECOACH_SERVICES_COMMON_CONVERT_CLEAN_TEXTS_H_

#include <google/protobuf/message.h>

namespace stagecoach {

// Every string of the message and of messages inside becomes base/utf8.h's ShownName. Fields made
// for lines (message, error, reason, schedule, timeline, unreachable) become ShownText. Left as
// they are: bytes, keys of maps, and a job's spec, which has the names of files.
void CleanTexts(google::protobuf::Message* message);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_CONVERT_CLEAN_TEXTS_H_
