// CompressAnswer: packs an answer's JSON by gzip, if the client takes it.
// ISA-L packs in one call; Boost.Beast's deflate writes neither gzip's header nor its checksum.
// Threads: any.
// Errors:  none; if it were not smaller, the answer stays as it is.
#ifndef STAGECOACH_SERVICES_COMMON_HTTP_GZIP_ANSWER_H_
#define STAGECOACH_SERVICES_COMMON_HTTP_GZIP_ANSWER_H_

#include "services/common/http/http_message.h"

namespace stagecoach {

void CompressAnswer(const HttpRequest& request, HttpResponse* response);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_HTTP_GZIP_ANSWER_H_
