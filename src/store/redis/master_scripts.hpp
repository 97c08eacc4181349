#pragma once

#include <string_view>

namespace speedo {

// The steps of store/mastership.hpp in Redis' Lua; a script runs as one. KEYS: term, lease, then
// what is written or erased. Each returns one text, see encode_answer(). They go out with EVAL: a
// restarted server has forgotten scripts, and 800 bytes are nothing beside a manifest.

// What writes begin with. ARGV: term, writer; empty: nobody else writes the record. If not, the
// last of KEYS is where the latest writer is kept.
inline constexpr std::string_view kWriteStart =
    "local s = redis.call('GET', KEYS[1]) "
    "local by_one = ARGV[2] == '' "
    "local w = not by_one and redis.call('GET', KEYS[#KEYS]) "
    "if s and (#s ~= 20 or string.find(s, '%D')) then return 'corrupt' end "
    "if s and s > ARGV[1] then "
    "local lease = redis.call('GET', KEYS[2]) or '' "
    "if string.sub(lease, 1, 20) < s then lease = '' end "
    "return 'higher ' .. s .. ' ' .. redis.call('PTTL', KEYS[2]) .. ' ' .. "
    "string.sub(lease, 22) end "
    "if w and (#w ~= 40 or string.find(w, '%D')) then return 'corrupt' end "
    "if w and w > ARGV[2] then return 'later' end "
    "if s ~= ARGV[1] then redis.call('SET', KEYS[1], ARGV[1]) end "
    "if not by_one then redis.call('SET', KEYS[#KEYS], ARGV[2]) end ";

// Behind it. ARGV: also the seconds until the key expires (0: never), the value.
inline constexpr std::string_view kSetEnd =
    "if ARGV[3] == '0' then redis.call('SET', KEYS[3], ARGV[4]) "
    "else redis.call('SETEX', KEYS[3], ARGV[3], ARGV[4]) end "
    "return 'done'";

inline constexpr std::string_view kEraseEnd =
    "for i = 3, by_one and #KEYS or #KEYS - 1 do redis.call('UNLINK', KEYS[i]) end "
    "return 'done'";

// ARGV: term, holder, milliseconds, is new, by force ("1" or "0"), dead holder.
inline constexpr std::string_view kClaimScript =
    "local s = redis.call('GET', KEYS[1]) or string.rep('0', 20) "
    "if #s ~= 20 or string.find(s, '%D') then return 'corrupt' end "
    "local lease = redis.call('GET', KEYS[2]) "
    "local holder = string.sub(lease or '', 22) "
    "local mine = lease and holder == ARGV[2] "
    "local outdated = lease and string.sub(lease, 1, 20) < s "
    "local open = not lease or mine or ARGV[5] == '1' or holder == ARGV[6] "
    "local is_new = ARGV[4] == '1' "
    "local refused = nil "
    "if is_new and not open then refused = 'held ' "
    "elseif s > ARGV[1] or "
    "(s == ARGV[1] and not (mine or ((not lease or outdated) and not is_new))) then "
    "refused = 'higher ' "
    "if outdated then holder = '' end end "
    "if refused then "
    "return refused .. s .. ' ' .. redis.call('PTTL', KEYS[2]) .. ' ' .. holder end "
    "redis.call('SET', KEYS[1], ARGV[1]) "
    "redis.call('SET', KEYS[2], ARGV[1] .. ' ' .. ARGV[2], 'PX', ARGV[3]) "
    "return 'done'";

// ARGV: term, holder.
inline constexpr std::string_view kReleaseScript =
    "if redis.call('GET', KEYS[2]) == ARGV[1] .. ' ' .. ARGV[2] then "
    "redis.call('DEL', KEYS[2]) end "
    "return 'done'";

}  // namespace speedo
