#pragma once

#include <cstdint>

#include <speedo/base/result.hpp>
#include <speedo/store/blob_store.hpp>
#include <speedo/store/master_store.hpp>
#include <speedo/store/part_store.hpp>
#include <speedo/store/record_store.hpp>

namespace speedo {

// All that is stored of one job: whoever needs only its records, its blobs or its mastership is
// given that part. Redis in production, memory in tests; store/layout.hpp documents keys and bytes.
//
// Operations retry transient failures (reconnecting with back-off, kStoreAttemptsMax) before they
// return an error, so an error is worth reporting. A failed write leaves the old value readable.
// Keys: letters, digits, '-', '_', '/', '.'.
// Thread safety: all methods may be called from several threads; a writer or reader belongs to one.
class ParameterStore : public RecordStore,
                       public PartStore,
                       public BlobStore,
                       public MasterStore {
 public:
  // From here on every record and blob that this object writes is a master's of this term: it
  // becomes visible only if no higher term was granted, else finish() and put_blob() say
  // kSuperseded, and readers see what the newer master wrote. The same for what it erases. 0 (the
  // start): not a master's.
  virtual void fence(std::uint64_t term) = 0;

  // Removes everything of this job, mastership aside. Not atomic: what others write meanwhile may
  // stay. kSuperseded: see fence(); then nothing that the newer master wrote is gone.
  virtual Result<void> clear() = 0;

  // Removes what masters below this store's term have written without that a manifest names it: of
  // weights and checkpoints whose first put they did not live to finish. Before this one's first
  // put of them. Not atomic, and kSuperseded, as clear(). Does nothing for a store without a term.
  virtual Result<void> erase_unnamed() = 0;

  // Error kMismatch if the store's servers hold a job of this name in another order; those of the
  // store. Asks for all keys of the job.
  virtual Result<void> check_places() = 0;

  // For a program that is about to end: from here on a server that does not answer for
  // kStoreEndPatience is given up for good. What is under way, and all that follows, then ends with
  // kUnavailable or kTimeout, without further attempts. A server that answers is used as before.
  virtual void stop_waiting() = 0;
};

}  // namespace speedo
