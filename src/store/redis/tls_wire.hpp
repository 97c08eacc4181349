#pragma once

#include <memory>
#include <string>

#include <speedo/base/result.hpp>
#include <speedo/store/redis_store.hpp>

#include "store/redis/redis_wire.hpp"

namespace speedo {

// TLS 1.2 or 1.3 with the server at `host`, which must show a certificate for that name, over a
// connected socket, which it takes over. The files are read anew each time. Errors: kTimeout;
// kUnavailable, also when `patience` is stopped; kNotFound, kConfig for files; kRefused if a side
// does not accept the other's certificate, here or later by receive().
Result<std::unique_ptr<RedisWire>> open_tls_wire(int socket, const RedisTlsFiles& files,
                                                 const std::string& host,
                                                 const RedisPatience& patience);

}  // namespace speedo
