-- Wide numbers: products of units and microseconds reach 2^94, and a double is exact below 2^53 only.
--
-- A wide number is two doubles, high x 2^48 + low, with low below 2^48. Products that stay below 2^53 never come
-- here: callers look first. What is divided by is below 2^50.
local EXACT = 9007199254740992 -- 2^53: products below are exact
local HALF, WHOLE = 16777216, 281474976710656 -- 2^24 and 2^48

local function more(ah, al, bh, bl)
  local low = al + bl
  if low >= WHOLE then return ah + bh + 1, low - WHOLE end
  return ah + bh, low
end

-- a - b, or 0 if that is less.
local function less(ah, al, bh, bl)
  if ah < bh or (ah == bh and al <= bl) then return 0, 0 end
  if al < bl then return ah - bh - 1, al + WHOLE - bl end
  return ah - bh, al - bl
end

local wide_functions
local function wide()
  if wide_functions then return wide_functions end

  -- a x b, which must stay below 2^100.
  local function mul(a, b)
    local ah, bh = floor(a / HALF), floor(b / HALF)
    local al, bl = a - ah * HALF, b - bh * HALF
    local m, n = ah * bl, al * bh
    local mh, nh = floor(m / HALF), floor(n / HALF)
    local low = al * bl + (m - mh * HALF + (n - nh * HALF)) * HALF
    local carry = floor(low / WHOLE)
    return ah * bh + mh + nh + carry, low - carry * WHOLE
  end

  local function at_most(ah, al, bh, bl)
    return ah < bh or (ah == bh and al <= bl)
  end

  -- (r x 2^48 + low) / d for r below d: the quotient, below 2^48, is guessed in doubles and put right.
  local function div_step(r, low, d)
    local q = floor((r * WHOLE + low) / d)
    local ph, pl = mul(q, d)
    local rest = (r - ph) * WHOLE + (low - pl)
    while rest < 0 do
      q, rest = q - 1, rest + d
    end
    while rest >= d do
      q, rest = q + 1, rest - d
    end
    return q, rest
  end

  -- Quotient, wide, and rest.
  local function div(ah, al, d)
    local q1 = floor(ah / d)
    local q0, rest = div_step(ah - q1 * d, al, d)
    return q1, q0, rest
  end

  -- floor(a x b / d) and the rest, for quotients below 2^53.
  local function mul_div(a, b, d)
    local h, l = mul(a, b)
    local qh, ql, rest = div(h, l, d)
    return qh * WHOLE + ql, rest
  end

  wide_functions = { mul = mul, at_most = at_most, div = div, mul_div = mul_div }
  return wide_functions
end

-- floor(a x b / d) and ceil(a x b / d), which must be below 2^53.
local function floor_share(a, b, d)
  local product = a * b
  if product < EXACT then return floor(product / d) end
  return (wide().mul_div(a, b, d))
end

local function ceil_share(a, b, d)
  local product = a * b
  if product < EXACT then return -floor(-product / d) end
  local quotient, rest = wide().mul_div(a, b, d)
  if rest > 0 then return quotient + 1 end
  return quotient
end

-- Whether a x b <= c x d.
local function product_at_most(a, b, c, d)
  local left, right = a * b, c * d
  if left < EXACT or right < EXACT then return left <= right end
  local w = wide()
  local ah, al = w.mul(a, b)
  return w.at_most(ah, al, w.mul(c, d))
end
