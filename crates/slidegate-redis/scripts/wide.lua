-- Wide numbers: products of units and microseconds reach 2^94, and a double is exact up to 2^53 only.
--
-- A wide number is two doubles, high x 2^48 + low, with low below 2^48. Callers compute smaller products as plain
-- doubles. Divisors are below 2^50.
local DECIMAL_BASE = 1e15 -- below 2^50, as divisors are
local HALF_BASE = 16777216 -- 2^24: half the bits of a low part, so that products of two such halves are exact

local function add(ah, al, bh, bl)
  local low = al + bl
  if low >= WIDE_BASE then return ah + bh + 1, low - WIDE_BASE end
  return ah + bh, low
end

-- a - b, or 0 if that is less.
local function saturating_sub(ah, al, bh, bl)
  if ah < bh or (ah == bh and al <= bl) then return 0, 0 end
  if al < bl then return ah - bh - 1, al + WIDE_BASE - bl end
  return ah - bh, al - bl
end

local wide_functions
local function wide()
  if wide_functions then return wide_functions end

  -- a x b, which must stay below 2^100.
  local function mul(a, b)
    local ah, bh = floor(a / HALF_BASE), floor(b / HALF_BASE)
    local al, bl = a - ah * HALF_BASE, b - bh * HALF_BASE
    local m, n = ah * bl, al * bh
    local mh, nh = floor(m / HALF_BASE), floor(n / HALF_BASE)
    local low = al * bl + (m - mh * HALF_BASE + (n - nh * HALF_BASE)) * HALF_BASE
    local carry = floor(low / WIDE_BASE)
    return ah * bh + mh + nh + carry, low - carry * WIDE_BASE
  end

  local function at_most(ah, al, bh, bl)
    return ah < bh or (ah == bh and al <= bl)
  end

  -- (r x 2^48 + low) / d for r below d: the quotient, below 2^48, is estimated in doubles and corrected.
  local function div_step(r, low, d)
    local q = floor((r * WIDE_BASE + low) / d)
    local ph, pl = mul(q, d)
    local rest = (r - ph) * WIDE_BASE + (low - pl)
    while rest < 0 do
      q, rest = q - 1, rest + d
    end
    while rest >= d do
      q, rest = q + 1, rest - d
    end
    return q, rest
  end

  -- The quotient, wide, and the remainder.
  local function div(ah, al, d)
    local q1 = floor(ah / d)
    local q0, rest = div_step(ah - q1 * d, al, d)
    return q1, q0, rest
  end

  -- floor(a x b / d) and the remainder, for quotients below 2^53.
  local function mul_div(a, b, d)
    local h, l = mul(a, b)
    local qh, ql, rest = div(h, l, d)
    return qh * WIDE_BASE + ql, rest
  end

  wide_functions = { mul = mul, at_most = at_most, div = div, mul_div = mul_div }
  return wide_functions
end

-- A wide number from 2^53 up as decimal text. `%.0f` writes doubles exactly, and both parts are.
local function decimal(high, low)
  local qh, ql, rest = wide().div(high, low, DECIMAL_BASE)
  return string.format('%.0f%015.0f', qh * WIDE_BASE + ql, rest)
end

-- floor(a x b / d), which must be below 2^53.
local function quotient(a, b, d)
  local product = a * b
  if product < EXACT then return floor(product / d) end
  return (wide().mul_div(a, b, d))
end

-- ceil(a x b / d), which must be below 2^53.
local function share_rounded_up(a, b, d)
  local product = a * b
  if product < EXACT then return -floor(-product / d) end
  local whole, rest = wide().mul_div(a, b, d)
  if rest > 0 then return whole + 1 end
  return whole
end

-- Whether a x b <= c x d.
local function product_at_most(a, b, c, d)
  local left, right = a * b, c * d
  if left < EXACT or right < EXACT then return left <= right end
  local w = wide()
  local ah, al = w.mul(a, b)
  return w.at_most(ah, al, w.mul(c, d))
end
