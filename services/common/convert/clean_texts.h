// Texts of a message that another process sent, before they are stored, counted, logged or shown.
// Threads: pure function.
#ifndef STAGECOACH_SERVICES_COMMON_CONVERT_CLEAN_TEXTS_H_
#define STAGECOACH_SERVICES_COMMON_CONVERT_CLEAN_TEXTS_H_

#include <google/protobuf/message.h>

namespace stagecoach {

// Every string of the message and of those in it becomes what base/utf8.h shows of it: ShownName,
// or ShownText where the field is made for lines (message, error, reason, schedule, timeline,
// unreachable). Left as they are: bytes, keys of maps, and what stands within a job's spec, which
// says what files are called.
void CleanTexts(google::protobuf::Message* message);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_CONVERT_CLEAN_TEXTS_H_
