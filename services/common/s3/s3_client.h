// S3Client: one bucket of an S3 server. A call is repeated until it succeeds, its error is final,
// or nothing has moved for give_up_seconds.
// Ownership: borrows transfer, credentials and clock.
// Threads:   thread-safe; calls wait, and tick progress.
// Units:     bytes; seconds.
// Errors:    with the object and the server's words. NOT_FOUND: no such object. ALREADY_EXISTS:
//            PutIfAbsent, and another content is there. PERMISSION_DENIED: credentials that are
//            wrong, expired or of no use here, or a clock that is off. FAILED_PRECONDITION: no such
//            bucket, which must not look like an empty one, or one of another region.
//            RESOURCE_EXHAUSTED: the store is full. UNAVAILABLE: gave up. CANCELLED after the
//            transfer's Shutdown. OUT_OF_RANGE: a range that the object has not.
#ifndef STAGECOACH_SERVICES_COMMON_S3_S3_CLIENT_H_
#define STAGECOACH_SERVICES_COMMON_S3_S3_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/threads/clock.h"
#include "services/common/s3/http_transfer.h"
#include "services/common/s3/s3_credentials.h"
#include "services/common/s3/s3_location.h"

namespace stagecoach {

struct S3Entry {
  std::string key;
  int64_t bytes = 0;
  std::string etag;
  double modified_seconds = 0;  // since 1970; 0: the server does not tell
};

struct S3Listing {
  std::vector<S3Entry> objects;
  std::vector<std::string> prefixes;  // "a/b/", where names below were not asked for
};

// An upload in parts that is neither complete nor dropped.
struct S3Upload {
  std::string key, id;
  double begun_seconds = 0;  // as S3Entry's
};
struct S3Part {
  int64_t bytes = 0;
  std::string etag;
};

class S3Client {
 public:
  struct Options {
    S3Location location;
    double give_up_seconds = 60;        // without a byte
    double first_pause_seconds = 0.05;  // before a call is repeated; doubles up to 2 s
  };
  // The longest life of a presigned URL: that of a grant.
  static constexpr int64_t kMostPresignedSeconds = 6 * 3600;

  S3Client(Options options, HttpTransfer* transfer, S3CredentialSource* credentials,
           const Clock* clock = SystemClock::Get())
      : options_(std::move(options)),
        transfer_(*transfer),
        credentials_(*credentials),
        clock_(*clock) {}

  const S3Location& location() const { return options_.location; }

  absl::Status Put(const std::string& key, std::span<const std::byte> bytes);
  // Of several at the same time one wins. OK also if the object that is there has this content: it
  // was this call, whose answer got lost.
  absl::Status PutIfAbsent(const std::string& key, std::span<const std::byte> bytes);
  absl::StatusOr<int64_t> Size(const std::string& key);
  absl::StatusOr<S3Entry> Look(const std::string& key);     // size and ETag
  absl::StatusOr<std::string> Get(const std::string& key);  // a small object, whole
  absl::Status Read(const std::string& key, int64_t offset, std::span<std::byte> target);
  absl::Status Delete(const std::string& key);  // absent: OK
  // All keys that begin so. flat: those that have a '/' behind the prefix only as `prefixes`.
  // most: stop after so many, at the next full page.
  absl::StatusOr<S3Listing> List(const std::string& prefix, bool flat, size_t most = SIZE_MAX);

  // An upload in parts, whose parts others send by URLs.
  absl::StatusOr<std::string> BeginParts(const std::string& key);
  // Repeating it is harmless: an object of `bytes` bytes is taken for its result.
  absl::Status CompleteParts(const std::string& key, const std::string& upload_id,
                             const std::vector<std::string>& etags, int64_t bytes);
  // Unfinished uploads of keys that begin so.
  absl::StatusOr<std::vector<S3Upload>> ListUploads(const std::string& prefix);
  // The parts of one from number 1 on, without a gap.
  absl::StatusOr<std::vector<S3Part>> ListParts(const std::string& key,
                                                const std::string& upload_id);
  absl::Status DropUpload(const std::string& key, const std::string& upload_id);  // absent: OK
  // Ends all unfinished uploads of keys that begin so.
  absl::Status DropParts(const std::string& prefix);

  // A URL for this one request. query: of a part's upload. seconds: at most kMostPresignedSeconds;
  // it ends earlier with credentials that expire.
  absl::StatusOr<std::string> Presign(const std::string& method, const std::string& key,
                                      const NamedTexts& query, int64_t seconds);

 private:
  struct Request {
    std::string method, key;
    NamedTexts query = {}, headers = {};
    std::span<const std::byte> body = {};
    std::span<std::byte> target = {};
  };
  absl::StatusOr<HttpAnswer> Once(const Request& request, size_t* received);
  absl::StatusOr<HttpAnswer> Do(const Request& request);
  absl::Status ErrorOf(const Request& request, const HttpAnswer& answer) const;
  std::string Named(const std::string& key) const;

  const Options options_;
  HttpTransfer& transfer_;
  S3CredentialSource& credentials_;
  const Clock& clock_;
};

// Base64 of MD5, for the header Content-MD5: the server compares. Empty where OpenSSL has no MD5.
std::string ContentMd5(std::span<const std::byte> bytes);
// MD5 as most stores have it in an object's or a part's ETag, without the quotes there.
std::string Md5Hex(std::span<const std::byte> bytes);

// Words of what a store's server answered: "HTTP 403 AccessDenied: ...".
std::string WordsOf(const HttpAnswer& answer);
// Another try may do: an overloaded server, a broken connection on its side, a conflict.
bool IsPassing(const HttpAnswer& answer);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_S3_S3_CLIENT_H_
