-- The end of the fast path: see fast-begin.lua.
  end
end
